package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// letGo puts /dev/null in the place of descriptors that the command has now: who
// is at the other end of a pipe shall see when the command closes it.
func letGo(fds ...int) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/null: %w", err)
	}
	defer unix.Close(null)
	for _, fd := range fds {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return nil
}

// closeInherited closes the descriptors that this process was given for the
// command. Its own are closed on exec; those are not.
func closeInherited() {
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range fds {
		fd, err := strconv.Atoi(filepath.Base(name))
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
