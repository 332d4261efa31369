package terminal

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// A Terminal is the controlling terminal of this process. All methods of a nil
// *Terminal do nothing.
type Terminal struct {
	f    *os.File
	home int // our group
	lent bool
	ours *unix.Termios // its modes when we have it
}

// Open opens the controlling terminal; nil: there is none.
func Open() *Terminal {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &Terminal{f: f, home: unix.Getpgrp()}
}

// Close closes it.
func (t *Terminal) Close() {
	if t != nil {
		_ = t.f.Close()
	}
}

// Ours tells whether our group is in the foreground.
func (t *Terminal) Ours() bool { return t != nil && t.foreground() == t.home }

// Lent tells whether the terminal is lent.
func (t *Terminal) Lent() bool { return t != nil && t.lent }

func (t *Terminal) foreground() int {
	group, err := unix.IoctlGetInt(int(t.f.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// Job tells whether this process alone is what a shell has in the foreground, and
// talks to the terminal: then the command gets it from the start. In a pipeline
// or a script the others of the group need it too, if only for what is typed to
// end them.
func (t *Terminal) Job() bool {
	return t.Ours() && t.home == os.Getpid() && t.is(0) && t.is(1)
}

// is tells whether a descriptor is this terminal.
func (t *Terminal) is(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == t.foreground()
}

// Keep remembers the modes of the terminal, for Restore.
func (t *Terminal) Keep() {
	if t != nil {
		t.ours, _ = unix.IoctlGetTermios(int(t.f.Fd()), unix.TCGETS)
	}
}

// Lend puts a group in the foreground, which may be there already. From then on
// this process isn't stopped for what it does with the terminal; so call it after
// the command was started, which would inherit that.
func (t *Terminal) Lend(group int) {
	if t != nil {
		t.lent = true
		t.put(group)
	}
}

// Reclaim is TakeBack for a command that got the foreground and could not be
// started.
func (t *Terminal) Reclaim() {
	if t != nil && t.foreground() != t.home && t.is(0) {
		t.lent = true
		t.TakeBack()
	}
}

// TakeBack puts our group in the foreground again.
func (t *Terminal) TakeBack() {
	if t.Lent() {
		t.lent = false
		t.put(t.home)
	}
}

func (t *Terminal) put(group int) {
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(t.f.Fd()), unix.TIOCSPGRP, group) // it is closed, or the group has ended
}

// Restore sets the modes to what they were at Keep, and returns those that were in
// force.
func (t *Terminal) Restore() (theirs *unix.Termios) {
	if t == nil {
		return nil
	}
	theirs, _ = unix.IoctlGetTermios(int(t.f.Fd()), unix.TCGETS)
	t.Set(t.ours)
	return theirs
}

// Set sets the modes; nil changes nothing.
func (t *Terminal) Set(modes *unix.Termios) {
	if t != nil && modes != nil {
		signal.Ignore(unix.SIGTTOU)
		_ = unix.IoctlSetTermios(int(t.f.Fd()), unix.TCSETSW, modes)
	}
}

// Resumable tells whether there is a shell that would notice if our group was
// stopped, and continue it: a parent of the group in the same session.
func Resumable() bool {
	group := unix.Getpgrp()
	if signal.Ignored(unix.SIGTSTP) {
		return false
	}
	for pid, depth := os.Getppid(), 0; pid > 0 && depth < 100; depth++ {
		above, err := unix.Getpgid(pid)
		if err != nil {
			return false
		}
		if above != group {
			theirs, err := unix.Getsid(pid)
			ours, _ := unix.Getsid(0)
			return err == nil && theirs == ours
		}
		if pid, err = parentOf(pid); err != nil {
			return false
		}
	}
	return false
}
