package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Charge is a kind of violation.
type Charge string

// What the judge convicts of.
const (
	Malformed Charge = "malformed history" // the witness is wrong, not the store
	Overlap   Charge = "overlap"
	Token     Charge = "token"
	Fence     Charge = "fence"
	Refusal   Charge = "refusal"
	Stall     Charge = "lost wake-up"
	Leftover  Charge = "leftover"
	Twice     Charge = "done twice"
)

// A Violation is one conviction.
type Violation struct {
	Charge Charge
	Key    string
	At     time.Duration
	What   string
}

// String is the violation as a line of a report.
func (v Violation) String() string {
	return fmt.Sprintf("%s on %q at %v: %s", v.Charge, v.Key, v.At, v.What)
}

// Rules are what a store must be judged by.
type Rules struct {
	// Tokens tells whether there are tokens and fences at all.
	Tokens bool
	// Settle is how long after the last fault claims of the dead may still be
	// in the way, and Bound is how long a name may be free beside a waiter
	// after that. Bound 0: progress is not judged.
	Settle, Bound time.Duration
}

// Judge returns every violation in events, ordered by time. events may be in any
// order as long as those of one attempt are in theirs.
func Judge(events []Event, r Rules) []Violation {
	all, bad := attempts(events)
	bad = append(bad, overlaps(all)...)
	if r.Tokens {
		bad = append(bad, tokens(all)...)
		bad = append(bad, fences(all)...)
	}
	bad = append(bad, refusals(all)...)
	if r.Bound > 0 {
		bad = append(bad, stalls(all, quiet(events, r.Settle), r.Bound)...)
	}
	bad = append(bad, repeats(all, events)...)
	for _, e := range events {
		if e.Kind == Left {
			bad = append(bad, Violation{Leftover, e.Key, e.At, e.What})
		}
	}
	slices.SortStableFunc(bad, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return bad
}
