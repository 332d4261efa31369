package driver

import "context"

// A Diagnoser is a store that can tell whether what it stands on is fit for
// locks: the server's settings, the file's permissions, the rights of the user.
type Diagnoser interface {
	// Diagnose looks, changes nothing that lasts, and returns what it found, the
	// most telling first. What the user has no right to see is an Info that says
	// which right it takes. The error says that the store gives no answer, and
	// comes with whatever was found before.
	Diagnose(ctx context.Context) ([]Finding, error)
}

// A Finding is one thing that a Diagnoser found.
type Finding struct {
	Check string // what was looked at, in a word or two: "eviction"
	Level Level
	Text  string // what was found, and what it means for locks
	Hint  string // what to do about it, perhaps on several lines; "": nothing
}

// Level says how much a finding matters.
type Level uint8

// From the least to the most. Only Unfit means that the store must not be used.
const (
	Fine  Level = iota // as it should be
	Info               // worth knowing, or it could not be found out
	Warn               // it works, and something can go wrong that need not
	Unfit              // locks do not work here, or do not exclude
)

var levels = [...]string{"ok", "info", "warning", "failed"}

// String returns the level as the command prints it.
func (l Level) String() string {
	if int(l) < len(levels) {
		return levels[l]
	}
	return "unknown"
}
