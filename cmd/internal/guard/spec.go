package guard

import (
	"os"
	"time"
)

// A Spec says what to start.
type Spec struct {
	Path  string   // the program
	Argv  []string // its own name first
	Env   []string
	Limit Limit
	Life  *os.File // kept open until nothing of the command is left; may be nil

	// Foreground hands the terminal to the command's group.
	Foreground bool

	// Files are what the command has for stdin, stdout and stderr. All nil: it
	// shares those of this process, which has /dev/null for stdin and stdout from
	// then on, and may start one command.
	Files [3]*os.File
}

// shares tells whether the command has this process's own files.
func (s Spec) shares() bool { return s.Files == [3]*os.File{} }

// files returns what the command has.
func (s Spec) files() [3]*os.File {
	if s.shares() {
		return [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	}
	return s.Files
}

// A Limit is when the guardian stops the command by itself, from now on: it is
// for a dibs that does not do so. The zero Limit is none.
type Limit struct {
	Term time.Duration // TERM then
	Kill time.Duration // KILL then; 0: no limit
}
