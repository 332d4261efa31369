//go:build unix

package servers

import (
	"os"
	"syscall"
)

// signalGroup signals the child and what it started in its group.
func signalGroup(p *os.Process, s syscall.Signal) error {
	return syscall.Kill(-p.Pid, s)
}

func pauseGroup(p *os.Process) error {
	if err := signalGroup(p, syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStop(p.Pid)
}

func resumeGroup(p *os.Process) error {
	return signalGroup(p, syscall.SIGCONT)
}
