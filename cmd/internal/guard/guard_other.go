//go:build !linux

package guard

import (
	"errors"
	"os"
	"syscall"

	"github.com/dibslock/dibs/cmd/internal/child"
)

// ErrUnguarded doesn't happen where there is no guardian.
var ErrUnguarded = errors.New("the guardian was killed, and the command with it")

// A Process is a command. There is no guardian here, and nobody hears of a command
// that is stopped.
type Process struct{ *child.Process }

// Start starts a command. Life and Limit have no effect: see child.Limits.
func Start(s Spec) (*Process, error) {
	p, err := child.Start(s.Path, s.Argv, s.Env, s.files())
	if err != nil {
		return nil, err
	}
	return &Process{p}, nil
}

// Stopped never tells anything here.
func (p *Process) Stopped() <-chan syscall.Signal { return nil }

// Relayed never has anything here.
func (p *Process) Relayed() <-chan os.Signal { return nil }

// Overdue is false: nobody keeps a limit here but dibs itself.
func (p *Process) Overdue() bool { return false }

// Limit has no effect here.
func (p *Process) Limit(Limit) {}

// Whole has no effect here: descendants outside of the group can't be found.
func (p *Process) Whole() {}

// Close has nothing to end here.
func (p *Process) Close() {}

// A Reaper does nothing here: os/exec collects the command.
type Reaper struct{}

// NewReaper returns one.
func NewReaper() *Reaper { return &Reaper{} }

// Stop has nothing to end.
func (r *Reaper) Stop() {}

// Guards tells whether commands have a guardian on this system.
const Guards = false

// Limits tells what cannot be promised on this system; "" if all can.
func Limits() string { return child.Limits() }
