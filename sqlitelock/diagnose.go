package sqlitelock

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dibslock/dibs/driver"
)

var _ driver.Diagnoser = (*Store)(nil)

// lowSpace is how little free space is worth a warning.
const lowSpace = 16 << 20

// Diagnose looks at the file, and at what stands around it. It opens nothing: to
// close a descriptor of a database is to let go of all locks that this process
// has on it.
func (s *Store) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.unknown(err)
	}
	found := []driver.Finding{s.diagnoseSchema()}
	death, err := s.diagnoseDeath()
	if err != nil {
		return found, err
	}
	return append(found, death, s.diagnoseFileSystem(), s.diagnosePermissions()), nil
}

func (s *Store) diagnoseSchema() driver.Finding {
	f := driver.Finding{Check: "schema", Text: fmt.Sprintf("version %d", schemaVersion)} // opening refuses others
	if s.file.made {
		f.Text += ", in a file that was made just now"
	}
	return f
}

func (s *Store) diagnoseDeath() (driver.Finding, error) {
	f := driver.Finding{Check: "death"}
	file, err := s.LifeFile()
	switch {
	case err != nil:
		return f, err
	case file == nil:
		f.Level, f.Text = driver.Info, "a dead holder's keys are free when its TTL is over: this system can't prove a death"
	default:
		f.Text = fmt.Sprintf("a dead holder's keys are free at once: the kernel lets go of the lock on its life file in %s-life", s.path)
	}
	return f, nil
}

// diagnoseFileSystem tells whether file locks exclude where the file is. Opening
// has refused what is not known to, unless force=yes.
func (s *Store) diagnoseFileSystem() driver.Finding {
	dir := filepath.Dir(s.path)
	name, isLocal := fileSystem(dir)
	f := driver.Finding{Check: "file system"}
	switch free := freeSpace(dir); {
	case !isLocal:
		f.Level, f.Text, f.Hint = driver.Warn, name+": not known to be local, and forced (force=yes)", "on a network file system the locks of two hosts do not exclude"
	case free >= 0 && free < lowSpace:
		f.Level, f.Text, f.Hint = driver.Warn, fmt.Sprintf("%s, with %d KiB free", name, free>>10), "a store on a full disk grants nothing"
	case name == "":
		f.Level, f.Text = driver.Info, "this system can't tell whether it is a network file system, which must not be used"
	default:
		f.Text = name + ", which is local"
	}
	return f
}

func (s *Store) diagnosePermissions() driver.Finding {
	f := driver.Finding{Check: "permissions"}
	info, err := os.Stat(s.path)
	if err != nil {
		f.Level, f.Text, f.Hint = driver.Unfit, err.Error(), "the file must stay where it is while it is in use: restart its users"
		return f
	}
	perm := info.Mode().Perm()
	f.Text = fmt.Sprintf("%s has mode %04o", s.path, perm)
	if name := owner(info); name != "" {
		f.Text += " and belongs to " + name
	}
	dir, err := os.Stat(filepath.Dir(s.path))
	switch {
	case perm&0o002 != 0:
		f.Level, f.Hint = driver.Warn, fmt.Sprintf("chmod o-w %q", s.path)
		f.Text += ": every user of this host can take locks away"
	case err == nil && dir.Mode()&0o002 != 0 && dir.Mode()&fs.ModeSticky == 0:
		f.Level, f.Hint = driver.Warn, fmt.Sprintf("chmod o-w %q", filepath.Dir(s.path))
		f.Text += ", but everybody may write to its directory, and replace it"
	case perm&0o060 == 0:
		f.Text += ": no other user can use it, except root"
	}
	return f
}
