//go:build unix && !linux

package child

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits tells what cannot be promised on this system; "" if all can.
func Limits() string {
	return "if dibs itself is killed by KILL, the command runs on without the lock; and a dibs that is frozen for longer than --ttl stops it only when it goes on"
}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit can't wait here without reaping.
func awaitExit(int) bool { return false }

// groupLives asks the kernel. Darwin answers EPERM for a group of zombies.
func (p *Process) groupLives() bool {
	err := unix.Kill(-p.Pid(), 0)
	return err == nil || errors.Is(err, unix.EPERM) && runtime.GOOS != "darwin"
}
