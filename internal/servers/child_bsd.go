//go:build unix && !linux

package servers

import "syscall"

// childAttr puts the child in a process group of its own, so that a signal can
// reach what it starts in turn. Nothing here ends it with a test process that
// is killed: only Linux can.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func awaitStop(int) error { return nil }

// Alive reports whether a process with this id runs.
func Alive(pid int) bool {
	return syscall.Kill(pid, 0) != syscall.ESRCH
}
