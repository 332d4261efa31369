//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// create makes and locks the file, once.
func (l *life) create() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		return nil
	}
	if l.shut {
		return os.ErrClosed
	}
	if err := makeDir(l.dir); err != nil {
		return err
	}
	for range 100 {
		err := l.tryLocked()
		if err == nil {
			return nil
		}
		// A sweeper took it for a leftover, in the moment before it was locked.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("life file: %w", err)
		}
	}
	return errors.New("life file: somebody removes it again and again")
}

func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := os.Lstat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s: %w", dir, errNoDir)
	}
	return nil
}

func (l *life) tryLocked() error {
	client := random()
	tmp := filepath.Join(l.dir, fmt.Sprintf("%s%016x", tmpPrefix, client))
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // and O_CLOEXEC
	if err != nil {
		return err
	}
	proof, err := lockNew(f)
	if err == nil {
		err = os.Rename(tmp, l.path(client))
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(tmp)
		return err
	}
	l.f, l.client, l.proof = f, client, proof
	return nil
}

func lockNew(f *os.File) (proof int64, err error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return 0, os.NewSyscallError("flock", err)
	}
	return inode(int(f.Fd()))
}

// inode tells which file fd is.
func inode(fd int) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return number(fmt.Sprintf("%d %d", st.Dev, st.Ino)), nil
}

// dead tells whether the client's file proves its death.
func (l *life) dead(client, proof int64) bool {
	fd, ok := openLife(l.path(client))
	if !ok {
		return false
	}
	defer unix.Close(fd)
	if is, err := inode(fd); err != nil || is != proof {
		return false
	}
	return free(fd)
}

func openLife(path string) (fd int, ok bool) {
	// Not for writing: the end of a descriptor that could write is what the
	// lookout listens for.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	return fd, err == nil
}

// free tells whether nobody has fd's file locked. The lock is shared, so that two
// who test it at once don't take each other for its owner.
func free(fd int) bool { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == nil }

// wake touches the client's file, which its lookout notices.
func (l *life) wake(client int64) {
	// An error leaves it to the client's poll.
	now := unix.NsecToTimeval(time.Now().UnixNano())
	_ = unix.Utimes(l.path(client), []unix.Timeval{now, now})
}

// close lets go of the file, orderly or as in a crash.
func (l *life) close(orderly bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	if l.f == nil {
		return nil
	}
	if orderly {
		if err := os.Remove(l.path(l.client)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			// It would prove a death that did not happen: keep the lock until
			// the process ends.
			return fmt.Errorf("life file: %w", err)
		}
	}
	return l.f.Close()
}

// leftovers calls f for each other client's file that is proved dead, and removes
// files that never got a name.
func (l *life) leftovers(f func(client int64) (done bool)) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return // there is none yet, or it is not ours to clean
	}
	own, _ := l.owner()
	for _, e := range entries {
		var client int64
		path := filepath.Join(l.dir, e.Name())
		named := len(e.Name()) == 16
		if named {
			if _, err := fmt.Sscanf(e.Name(), "%x", &client); err != nil || client == own {
				continue
			}
		} else if len(e.Name()) != len(tmpPrefix)+16 || e.Name()[:len(tmpPrefix)] != tmpPrefix {
			continue // not ours
		}
		fd, ok := openLife(path)
		if !ok {
			continue
		}
		if free(fd) && (!named || f(client)) {
			_ = os.Remove(path)
		}
		_ = unix.Close(fd)
	}
}
