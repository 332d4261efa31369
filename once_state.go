package dibs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// What a Once refuses to do, with errors.Is.
var (
	// ErrInterrupted: a run ended without a word, and the options say not to run
	// again. See *InterruptedError.
	ErrInterrupted = errors.New("interrupted")
	// ErrMismatch: another request was made under the key. See *MismatchError.
	ErrMismatch = errors.New("the key belongs to another request")
)

// An InterruptedError says that a run ended without a word, so that nobody knows
// what it did: nothing ran. It is an ErrInterrupted.
type InterruptedError struct {
	Key   string
	State OnceState // of that run
}

// Error says what to do.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%q: the run that %s began at %s was interrupted, and what it did is not known; look, and then forget it",
		e.Key, e.State.Note, e.State.Since.UTC().Format(time.RFC3339))
}

// Is makes it an ErrInterrupted.
func (e *InterruptedError) Is(target error) bool { return target == ErrInterrupted }

// A MismatchError says that the key is taken by another request: nothing ran. It
// is an ErrMismatch.
type MismatchError struct {
	Key              string
	Request, Present string // remembered, and asked for now
}

// Error names both.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%q: the key belongs to another request (%s, and not %s)", e.Key, e.Request, e.Present)
}

// Is makes it an ErrMismatch.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// OnceStatus is how far something is.
type OnceStatus string

// How far something can be.
const (
	Absent  OnceStatus = ""        // nothing is remembered
	Pending OnceStatus = "pending" // it runs, or was interrupted: only who holds the lock can tell
	Done    OnceStatus = "done"
)

// An OnceState is what is remembered of a key.
type OnceState struct {
	Status  OnceStatus    `json:"status"`
	Request string        `json:"request,omitempty"` // see OnceOptions
	Result  []byte        `json:"result,omitempty"`  // of Call
	Since   time.Time     `json:"since"`             // when it began (Pending) or was done, by the store's clock, for people
	Run     string        `json:"run"`               // of 128 random bits
	Note    string        `json:"note,omitempty"`    // who ran it
	Lock    string        `json:"-"`                 // the lock under which it ran
	Token   uint64        `json:"-"`                 // and that lock's token
	Left    time.Duration `json:"-"`                 // how long it is remembered still
}

func (s OnceState) encode() ([]byte, error) { return json.Marshal(s) }

// State tells what is remembered, and runs nothing.
func (o *Once) State(ctx context.Context) (s OnceState, err error) {
	err = o.edit(ctx, func(r driver.Record, _ time.Time) (_ *driver.Record, err error) {
		s, err = o.state(r)
		return nil, err
	})
	return s, err
}

// Forget forgets what is remembered, so that the next one runs. A run that is
// under way is not ended by it, and is remembered when it is done.
func (o *Once) Forget(ctx context.Context) error { return o.forget(ctx) }

// state reads a record.
func (o *Once) state(r driver.Record) (s OnceState, err error) {
	if r.Version == 0 {
		return s, nil
	}
	if err := json.Unmarshal(r.Value, &s); err != nil {
		return s, o.rejected("the record is not of a run: %w", err)
	}
	if s.Status != Pending && s.Status != Done {
		return s, o.rejected("the record is not of a run: status %q", s.Status)
	}
	s.Lock, s.Token, s.Left = r.TokenName, r.Token, r.Retention
	return s, nil
}

// matches tells whether what is remembered is of the same request.
func (o *Once) matches(s OnceState) error {
	if a, b := s.Request, o.options.Request; a != "" && b != "" && a != b {
		return &MismatchError{Key: o.name, Request: a, Present: b}
	}
	return nil
}
