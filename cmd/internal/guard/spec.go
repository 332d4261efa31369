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
}

// A Limit is when the guardian stops the command by itself, from now on: it is
// for a dibs that does not do so. The zero Limit is none.
type Limit struct {
	Term time.Duration // TERM then
	Kill time.Duration // KILL then; 0: no limit
}
