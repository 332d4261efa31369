//go:build unix

package executor

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// leftover reads what is in the pipe, and ends where it would have to wait.
type leftover struct{ pipe *os.File }

func (l leftover) Read(p []byte) (n int, err error) {
	_ = l.pipe.SetReadDeadline(time.Time{}) // one that is over fails a read that need not wait
	raw, err := l.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Read(func(fd uintptr) bool {
		for n, err = unix.Read(int(fd), p); err == unix.EINTR; {
			n, err = unix.Read(int(fd), p)
		}
		return true // whatever came of it: don't wait
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == unix.EAGAIN, n == 0:
		return 0, io.EOF
	}
	return max(n, 0), err
}
