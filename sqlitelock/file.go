package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dibslock/dibs/driver"
)

// A file is the lock file, by its path and by what it was when it was opened.
type file struct {
	path string
	info os.FileInfo
	made bool // by this client
}

// findFile finds the lock file, or makes an empty one.
func findFile(path string, force bool) (*file, error) {
	reject := func(format string, args ...any) (*file, error) {
		return nil, driver.Rejectedf("", "sqlite store %s: %w", path, fmt.Errorf(format, args...))
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reject("its directory %s does not exist; make it first", filepath.Dir(path))
	case err != nil:
		return reject("its directory: %w", err)
	}
	if !force {
		if name, local := fileSystem(dir); !local {
			return reject("it is on a file system that is not known to be local (%s), where file locks may not exclude; use a local disk, or force=yes if you are sure", name)
		}
	}
	openMu.Lock()
	defer openMu.Unlock()
	info, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		if link, e := os.Lstat(path); e == nil && link.Mode()&fs.ModeSymlink != 0 {
			return reject("it is a symbolic link to nothing")
		}
		if err := makeFile(path, dir); err != nil {
			return reject("it can't be made: %w", err)
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return reject("%w", err)
	}
	if why := unfit(info); why != "" {
		return reject("%s", why)
	}
	// SQLite names its other files, and dibs the life files, by the real path.
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return reject("%w", err)
	}
	return &file{real, info, made}, nil
}

// makeFile makes an empty file that only its owner may read. An empty file is an
// empty database, so that nobody sees a half-made one.
func makeFile(path, dir string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another was faster
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return syncDir(dir)
}

// unfit says why what is at the path can't be a lock file.
func unfit(info os.FileInfo) string {
	mode := info.Mode()
	switch {
	case mode.IsDir():
		return "it is a directory; name a file in it"
	case mode&fs.ModeNamedPipe != 0:
		return "it is a FIFO, not a file"
	case mode&fs.ModeSocket != 0:
		return "it is a socket, not a file"
	case mode&fs.ModeDevice != 0:
		return "it is a device, not a file"
	case !mode.IsRegular():
		return "it is not a regular file"
	case links(info) > 1:
		return "it has several names (hard links); SQLite would give each its own log and damage it"
	}
	return ""
}

// check tells whether the path still names the file that is open. If it was
// removed or replaced, another process may be at another file already, and they
// would not exclude each other.
func (f *file) check() error {
	info, err := os.Stat(f.path)
	if err == nil && os.SameFile(info, f.info) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return driver.Rejectedf("", "sqlite store %s: the file was removed or replaced while it was open; restart this program", f.path)
}
