//go:build unix

package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone tells whether nobody reads what w is written to any more: a pipe
// whose other end is closed, a terminal that hung up. Who writes seldom would not
// notice.
func readerGone(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// brokenPipe is the exit code of a program that wrote to such a one.
const brokenPipe = exitSignal + int(unix.SIGPIPE)
