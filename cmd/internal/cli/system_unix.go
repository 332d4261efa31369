//go:build unix

package cli

import (
	"errors"

	"golang.org/x/sys/unix"
)

// alive tells whether there is a process with this id.
func alive(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// writable tells whether this user may write to path; what is not there, or can't
// be looked at, is another matter.
func writable(path string) bool {
	err := unix.Access(path, unix.W_OK)
	return !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EROFS)
}
