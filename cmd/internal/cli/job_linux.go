package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/cmd/internal/terminal"
)

// A job is the command as what a person at a terminal runs: it has the foreground,
// Ctrl-Z stops it and dibs, and fg continues both. A nil job is one without a
// terminal.
type job struct {
	tty       *terminal.Terminal
	group     int
	signals   chan<- os.Signal // where TSTP arrives
	suspended bool
	wants     bool          // it has had the terminal, or was stopped for want of it
	theirs    *unix.Termios // its modes when it was suspended
}

// newJob returns nil if there is no terminal.
func newJob(tty *terminal.Terminal, group int, lent bool, signals chan<- os.Signal) *job {
	if tty == nil {
		return nil
	}
	j := &job{tty: tty, group: group, signals: signals, wants: lent}
	if lent {
		tty.Lend(group)
	}
	return j
}

// stopped acts on a command that sig has stopped; the result tells to continue it.
func (j *job) stopped(sig syscall.Signal) (resume bool) {
	if j == nil {
		return false
	}
	wants := sig == unix.SIGTTIN || sig == unix.SIGTTOU
	j.wants = j.wants || wants
	switch {
	case wants && j.tty.Ours():
		j.tty.Lend(j.group)
		return true
	case sig == unix.SIGSTOP && !j.tty.Lent():
		return false // somebody means the command alone
	case !wants && !j.tty.Lent() && !j.tty.Ours():
		return false
	case terminal.Resumable():
		j.suspend()
		return false
	}
	// Nobody could continue it.
	return sig == unix.SIGTSTP
}

// suspend gives the terminal back and stops the group of dibs, as the shell
// expects of a job. Until it is continued, the lock isn't renewed.
func (j *job) suspend() {
	j.suspended = true
	if j.tty.Lent() {
		j.theirs = j.tty.Restore()
		j.tty.TakeBack()
	}
	// Not Reset, which leaves Go's handler in place: one that STOP has overtaken
	// would run after the continuation, and be heard as a second Ctrl-Z.
	signal.Ignore(unix.SIGTSTP)
	_ = unix.Kill(0, unix.SIGTSTP) // the others of a pipeline or a script
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
}

// continued is told of a CONT, before the command is.
func (j *job) continued() {
	if j == nil || !j.suspended {
		return
	}
	j.suspended = false
	signal.Notify(j.signals, unix.SIGTSTP)
	if j.wants && j.tty.Ours() {
		j.tty.Lend(j.group)
		j.tty.Set(j.theirs)
	}
}

// ended takes the terminal back.
func (j *job) ended() {
	if j != nil {
		j.tty.TakeBack()
	}
}

// restore sets the modes of the terminal as they were before the command, unless
// the command had its last word on them.
func (j *job) restore(code int) {
	if j != nil && j.wants && code != 0 {
		j.tty.Restore()
	}
}
