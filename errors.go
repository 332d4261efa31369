package dibs

import (
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// What callers branch on, with errors.Is. Errors of a mode or a power that the
// store lacks are [errors.ErrUnsupported].
var (
	// ErrHeld: another is in the way; certainly not granted. See *HeldError.
	ErrHeld = driver.ErrHeld
	// ErrNotHeld: the store says that the claim is not, or not any more, held.
	ErrNotHeld = driver.ErrNotHeld
	// ErrRevoked: an operator took the claim away. It is an ErrNotHeld.
	ErrRevoked = driver.ErrRevoked
	// ErrRejected: a bad claim, name, setting or URL; asking again does not help.
	ErrRejected = driver.ErrRejected
	// ErrClosed: the client is closed.
	ErrClosed = driver.ErrClosed
	// ErrLost: the lease ended before its holder let go. See *LostError.
	ErrLost = errors.New("lease lost")
	// ErrReleased: the lease was released by its holder.
	ErrReleased = errors.New("lease released")
	// ErrUnknown: the store did not answer in time, or not clearly; what was
	// asked may have happened, or may still happen.
	ErrUnknown = errors.New("outcome unknown")
)

// A HeldError says who is in the way.
type HeldError = driver.HeldError

// A NotHeldError says who holds the name instead.
type NotHeldError = driver.NotHeldError

// An Error tells what was done, on which name and by which driver, when a store
// did not give a clear answer, or refused for a reason other than a holder. It
// is an ErrUnknown unless its cause is certain.
type Error struct {
	Op     string // "acquire", "release", "validate", "revoke", "list", "limit", "once", "convert", "open", "close"
	Name   string // the name that was to be locked; may be ""
	Driver string
	Err    error
}

// Error says it in one line.
func (e *Error) Error() string {
	s := e.Op
	if e.Name != "" {
		s += fmt.Sprintf(" %q", e.Name)
	}
	return fmt.Sprintf("%s by %s: %v", s, e.Driver, e.Err)
}

// Unwrap returns the store's error.
func (e *Error) Unwrap() error { return e.Err }

// Is makes it an ErrUnknown unless its cause is certain.
func (e *Error) Is(target error) bool {
	return target == ErrUnknown && !driver.Certain(e.Err) && !errors.Is(e.Err, ErrClosed)
}

// A Reason says why a lease was lost.
type Reason string

// Why a lease can be lost.
const (
	Expired      Reason = "expired"  // no proof came in time
	Taken        Reason = "taken"    // the store says that it is not ours any more
	RevokedAway  Reason = "revoked"  // an operator took it away
	OverMaxHold  Reason = "max-hold" // Settings.MaxHold is over
	ClientClosed Reason = "closed"   // the client was closed under it
	Together     Reason = "together" // another of the locks that were taken together with it was lost
)

// A LostError is the cause of the end of a lease's context, and what Check says
// from then on. It is an ErrLost.
type LostError struct {
	Name   string
	Fence  uint64
	Reason Reason
	Held   time.Duration // how long it was held
	Err    error         // the store's last word: a refusal, or why renewals failed; may be nil
}

// Error says why it was lost.
func (e *LostError) Error() string {
	why := string(e.Reason)
	switch e.Reason {
	case Expired:
		why = "no renewal was confirmed in time"
	case Taken:
		why = "the store says that it is not ours any more"
	case RevokedAway:
		why = "an operator revoked it"
	case OverMaxHold:
		why = "it was held for its longest time"
	case ClientClosed:
		why = "the client was closed"
	case Together:
		why = "another that was taken together with it was lost"
	}
	s := fmt.Sprintf("lease on %q lost after %v: %s", e.Name, e.Held.Round(time.Millisecond), why)
	if e.Err != nil && e.Reason != RevokedAway {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s
}

// Is makes it an ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the store's last word.
func (e *LostError) Unwrap() error { return e.Err }

// A WaitError says that a wait ended before the lock was granted. It unwraps to
// what ended it (the ctx's cause, or ErrClosed) and to the last refusal, so it
// is an ErrHeld if the store's last word was that another is in the way.
type WaitError struct {
	Name   string
	Waited time.Duration
	Cause  error // why the wait ended
	Last   error // the store's last word: a *HeldError, an unknown outcome, or nil
}

// Error says how long it waited and for whom.
func (e *WaitError) Error() string {
	s := fmt.Sprintf("gave up waiting for %q after %v: %v", e.Name, e.Waited.Round(time.Millisecond), e.Cause)
	if e.Last != nil {
		s += fmt.Sprintf("; last: %v", e.Last)
	}
	return s
}

// Unwrap returns the cause and the last word.
func (e *WaitError) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Last}
}
