package judge

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kind says what an event tells.
type Kind uint8

// The kinds. The first ones belong to an attempt, in this order.
const (
	Called   Kind = iota + 1 // an attempt began
	Granted                  // it returned a claim; Until: how long it may be trusted
	Refused                  // it returned a certain no
	Failed                   // it returned anything else: open-ended
	Proved                   // its holder may act, or could have acted, until Until
	Letting                  // its release was called
	Released                 // its release returned, and certainly nothing is left
	Lost                     // its holder stopped: open-ended
	Fault                    // of the whole history: something was broken
	Healed                   // of the whole history: nothing is broken any more
	Left                     // at the end the name was still taken or waited for
	Done                     // what runs under the name, once, was done
)

var kinds = [...]string{"", "called", "granted", "refused", "failed", "proved", "letting", "released", "lost", "fault", "healed", "left", "done"}

// String names k.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return "unknown"
}

// An Event is one line of a history.
type Event struct {
	Kind     Kind
	At       time.Duration // since the history's beginning, by the clock of all
	Attempt  int           // which attempt it is about; never 0 for one
	Proc     int           // whose attempt
	Key      string        // the name
	Units    int           // called: as in a driver.Claim
	Capacity int           // called
	Waits    bool          // called: it waits for its turn
	Holds    bool          // called: it may hold the name before it returns
	Token    uint64        // granted: 0 if it is not known
	Fence    uint64        // granted
	Until    time.Duration // granted, proved
	What     string        // for people
}

// String is the event as a line of a report.
func (e Event) String() string {
	s := fmt.Sprintf("%12v %-8s", e.At, e.Kind)
	if e.Attempt != 0 {
		s += fmt.Sprintf(" attempt %d of proc %d", e.Attempt, e.Proc)
	}
	if e.Key != "" {
		s += fmt.Sprintf(" on %q", e.Key)
	}
	switch e.Kind {
	case Called:
		s += fmt.Sprintf(" (%d of %d)", e.Units, e.Capacity)
	case Granted:
		s += fmt.Sprintf(" (token %d, fence %d, until %v)", e.Token, e.Fence, e.Until)
	case Proved:
		s += fmt.Sprintf(" (until %v)", e.Until)
	}
	if e.What != "" {
		s += ": " + e.What
	}
	return s
}

// A History collects events. It is safe for concurrent use.
type History struct {
	mu       sync.Mutex // guards all below
	begun    time.Time
	events   []Event
	attempts int
}

// NewHistory begins a history now.
func NewHistory() *History { return &History{begun: time.Now()} }

// Now is the history's clock.
func (h *History) Now() time.Duration { return time.Since(h.begun) }

// Since is the history's clock at t.
func (h *History) Since(t time.Time) time.Duration { return t.Sub(h.begun) }

// Add appends e; e.At is set to now if it is 0.
func (h *History) Add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.At == 0 {
		e.At = time.Since(h.begun)
	}
	h.events = append(h.events, e)
}

// Begin appends a Called for a new attempt and returns the attempt's number.
func (h *History) Begin(e Event) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts++
	e.Kind, e.Attempt, e.At = Called, h.attempts, time.Since(h.begun)
	h.events = append(h.events, e)
	return e.Attempt
}

// Write writes the history, an event a line.
func (h *History) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, e := range h.Events() {
		fmt.Fprintln(b, e)
	}
	return b.Flush()
}

// Events returns a copy of what was collected.
func (h *History) Events() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Event(nil), h.events...)
}
