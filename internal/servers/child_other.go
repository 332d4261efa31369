//go:build !unix

package servers

import (
	"errors"
	"os"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func signalGroup(p *os.Process, s syscall.Signal) error { return p.Signal(s) }

func pauseGroup(*os.Process) error { return errors.ErrUnsupported }

func resumeGroup(*os.Process) error { return errors.ErrUnsupported }

// Alive reports whether a process with this id runs.
func Alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	return p.Release() == nil
}
