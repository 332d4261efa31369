//go:build !unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// Limits tells what cannot be promised on this system; "" if all can.
func Limits() string {
	return "only the command itself is ended, by force and not by a signal; what it starts, and the command itself if dibs is killed, runs on without the lock; and a dibs that is frozen for longer than --ttl stops it only when it goes on"
}

func attributes() *syscall.SysProcAttr { return nil }

func awaitExit(int) bool { return false }

// groupLives: there are no groups, so nothing is left once the command has ended.
func (p *Process) groupLives() bool { return false }

// Terminate ends the command: there is no gentler way here.
func (p *Process) Terminate() error { return p.Kill() }

// Kill ends the command.
func (p *Process) Kill() error { return p.Signal(os.Kill) }

func (p *Process) signalLocked(sig os.Signal) error {
	if sig != os.Kill {
		return nil // an interrupt of the console reaches the command by itself
	}
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
