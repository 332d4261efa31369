package servers

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// childAttr puts the child in a process group of its own, so that a signal can
// reach what it starts in turn, and has the kernel kill it when the thread that
// started it dies.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitStop returns when all threads of the child have stopped. SIGSTOP by
// itself is only a request: a thread that runs on another core may answer one
// more client.
func awaitStop(pid int) error {
	const byPID = 1 // P_PID of waitid(2)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), 0, syscall.WSTOPPED, 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return errno // ECHILD: the child has ended instead
		}
	}
}

// Alive reports whether a process with this id runs. A zombie does not: it has
// ended and only waits for its parent to look.
func Alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// "pid (name) state ...", where the name may hold anything.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 || len(stat) < end+3 {
		return false
	}
	state := stat[end+2]
	return state != 'Z' && state != 'X'
}
