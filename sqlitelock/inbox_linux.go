package sqlitelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// An inbox hears of changes to life files by inotify.
type inbox struct {
	f    *os.File
	gone chan struct{}
}

// newInbox calls notice after client's life file was touched, and after any life
// file was let go by its last holder, until Close.
func newInbox(l *life, client int64, notice func()) (*inbox, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify") // non-blocking, so that close ends a read
	if _, err := unix.InotifyAddWatch(fd, l.path(client), unix.IN_ATTRIB); err != nil {
		_ = f.Close()
		return nil, os.NewSyscallError("inotify_add_watch", err)
	}
	if _, err := unix.InotifyAddWatch(fd, l.dir, unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR); err != nil {
		_ = f.Close()
		return nil, os.NewSyscallError("inotify_add_watch", err)
	}
	in := &inbox{f: f, gone: make(chan struct{})}
	go in.listen(notice) // until Close
	return in, nil
}

func (in *inbox) listen(notice func()) {
	defer close(in.gone)
	// Which file it was does not matter: notice looks at what the waiters need.
	buf := make([]byte, 4096)
	for {
		if _, err := in.f.Read(buf); err != nil {
			return
		}
		notice()
	}
}

// Close ends the listening.
func (in *inbox) Close() error {
	err := in.f.Close()
	<-in.gone
	return err
}
