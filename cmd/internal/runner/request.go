package runner

import (
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
)

// A Request asks for a run of a job.
type Request struct {
	Job     string
	Trigger string            // schedule, http or cli
	By      string            // who asks
	Params  map[string]string // beside those in the job's id
	Key     string            // an Idempotency-Key; "": none
	Hash    string            // of the request, to tell reuse of a key
	Tick    time.Time         // schedule: the tick
	Trace   string            // a traceparent
	RunID   string            // "": a new one
}

// Accepted is the answer to a request that was accepted, now or before.
type Accepted struct {
	Run      book.Run
	Replayed bool        // the key was seen before
	Position int         // in the queue, from 1; 0: it isn't queued
	Quota    *dibs.Quota // of the job's rate limit; nil: none was asked
}

// What a request can be refused with; besides *book.FullError, and the errors of
// a store that gives no clear answer.
var (
	// ErrNoJob: there is no job of that id.
	ErrNoJob = errors.New("there is no such job")
	// ErrCrowded: the instance has as many runs in hand as it may.
	ErrCrowded = errors.New("this instance has as many runs in hand as server.max_runs allows")
	// ErrKeyReused: the key was used for another request.
	ErrKeyReused = errors.New("the Idempotency-Key was used before, for another request")
)

// A ParamError says which parameter may not be.
type ParamError struct{ Err error }

// Error says so.
func (e *ParamError) Error() string { return e.Err.Error() }

// A PausedError says that an operator has paused the job.
type PausedError struct {
	Job string
	book.Pause
}

// Error says who, since when and why.
func (e *PausedError) Error() string {
	s := fmt.Sprintf("%q was paused by %s at %s", e.Job, e.By, e.Since.UTC().Format(time.RFC3339))
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// A BusyError says who holds the job's lock.
type BusyError struct {
	Job string
	*dibs.HeldError
}

// Unwrap returns the *dibs.HeldError.
func (e *BusyError) Unwrap() error { return e.HeldError }

// A LimitError says that the job's rate limit is used up.
type LimitError struct {
	Job   string
	Limit config.RateLimit
	*dibs.LimitedError
}

// Error says when to try again.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%q is run at most %d times per %v; the next run is possible in %v", e.Job, e.Limit.Runs, e.Limit.Per.Duration, e.RetryAfter.Round(time.Millisecond))
}

// Unwrap returns the *dibs.LimitedError.
func (e *LimitError) Unwrap() error { return e.LimitedError }

// reasonOf is a refusal in a word, for a skip and for metrics; "" if the store is
// the reason.
func reasonOf(err error) string {
	var (
		paused *PausedError
		busy   *BusyError
		limit  *LimitError
		full   *book.FullError
	)
	switch {
	case errors.As(err, &paused):
		return "paused"
	case errors.As(err, &busy):
		return "held"
	case errors.As(err, &limit):
		return "rate-limited"
	case errors.As(err, &full):
		return "queue-full"
	case errors.Is(err, ErrDraining):
		return "draining"
	case errors.Is(err, ErrCrowded):
		return "crowded"
	}
	return ""
}
