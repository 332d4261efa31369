//go:build unix

package child

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminate asks the group to end. A stopped process would not hear of it, so it
// is continued too.
func (p *Process) Terminate() error {
	return errors.Join(p.Signal(unix.SIGTERM), p.Signal(unix.SIGCONT))
}

// Kill ends the group.
func (p *Process) Kill() error { return p.Signal(unix.SIGKILL) }

func (p *Process) signalLocked(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	err := unix.Kill(-p.Pid(), number)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
