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

// newInbox calls notice after the life file own was touched, and after any life
// file in dir was let go by its last holder, until close.
func newInbox(dir, own string, notice func()) (*inbox, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify") // non-blocking, so that close ends a read
	if _, err := unix.InotifyAddWatch(fd, own, unix.IN_ATTRIB); err != nil {
		_ = f.Close()
		return nil, os.NewSyscallError("inotify_add_watch", err)
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR); err != nil {
		_ = f.Close()
		return nil, os.NewSyscallError("inotify_add_watch", err)
	}
	in := &inbox{f: f, gone: make(chan struct{})}
	go in.listen(notice) // until close
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

func (in *inbox) close() {
	_ = in.f.Close()
	<-in.gone
}
