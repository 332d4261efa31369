//go:build !linux

package cli

import (
	"os"
	"syscall"

	"github.com/dibslock/dibs/cmd/internal/terminal"
)

// A job doesn't exist here: the terminal stays with dibs.
type job struct{}

func newJob(*terminal.Terminal, int, bool, chan<- os.Signal) *job { return nil }

func (j *job) stopped(syscall.Signal) (resume bool) { return false }
func (j *job) continued()                           {}
func (j *job) ended()                               {}
func (j *job) restore(int)                          {}
