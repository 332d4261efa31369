package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/dibslock/dibs/driver"
)

// before looks at a store's file before it is opened: a process that closes a
// descriptor of a database lets go of all locks that it has on it.
func (d *doctor) before() {
	path := d.place.file()
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return // opening says what it is; reading might wait for ever
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.notef(info, "schema", "there is no file yet; it is made now")
		return
	}
	if err != nil {
		return // opening says more
	}
	defer f.Close()
	var header [100]byte
	if _, err := io.ReadFull(f, header[:]); err != nil || string(header[:15]) != "SQLite format 3" {
		return
	}
	// PRAGMA user_version and application_id, as the file format has them.
	if version := binary.BigEndian.Uint32(header[60:]); string(header[68:72]) == "dibs" {
		d.notef(fine, "schema", "version %d", version)
	}
}

// file looks at a store's file when it is open.
func (d *doctor) file() {
	path := d.place.file()
	if path == "" {
		return
	}
	d.fileSystem(path)
	info, err := os.Stat(path)
	if err != nil {
		d.fail("permissions", failf(exitConfig, "can't look at %s: %v", path, err))
		return
	}
	perm := info.Mode().Perm()
	text := fmt.Sprintf("%s has mode %04o", path, perm)
	if name := owner(info); name != "" {
		text += " and belongs to " + name
	}
	dir, err := os.Stat(filepath.Dir(path))
	switch {
	case perm&0o002 != 0:
		d.note(warning, "permissions", text+": every user of this host can take locks away", "chmod o-w "+shellWord(path))
	case err == nil && dir.Mode()&0o002 != 0 && dir.Mode()&fs.ModeSticky == 0:
		d.note(warning, "permissions", text+", but everybody may write to its directory, and replace it", "chmod o-w "+shellWord(filepath.Dir(path)))
	case perm&0o060 == 0:
		d.note(fine, "permissions", text+": no other user can use it, except root", "")
	default:
		d.note(fine, "permissions", text, "")
	}
}

// fileSystem tells whether file locks exclude where the file is. Opening has
// refused what is not known to, unless force=yes.
func (d *doctor) fileSystem(path string) {
	name := mountOf(path)
	if name == "" {
		name = "not known"
	}
	free := freeSpace(path)
	const check = "file system"
	switch {
	case d.forced():
		d.note(warning, check, name+": not known to be local, and forced (force=yes)", "on a network file system the locks of two hosts do not exclude")
	case free >= 0 && free < 16<<20:
		d.note(warning, check, fmt.Sprintf("%s, with %d KiB free", name, free>>10), "a store on a full disk grants nothing")
	case !knowsFileSystems:
		d.note(info, check, name+": this system can't tell whether it is a network file system, which must not be used", "")
	default:
		d.note(fine, check, name+", which is local", "")
	}
}

// forced tells whether the store would be refused without force=yes.
func (d *doctor) forced() bool {
	u, err := url.Parse(unjournaled(d.place.url))
	if err != nil || u.Query().Get("force") != "yes" {
		return false
	}
	q := u.Query()
	q.Del("force")
	u.RawQuery = q.Encode()
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	store, err := driver.Open(ctx, u.String())
	if err != nil {
		return true
	}
	_ = store.Close() // nothing was asked of it
	return false
}
