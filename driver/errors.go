package driver

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a store answers when it is certain. Everything else is unknown (law 5).
var (
	// ErrHeld: certainly not granted; another is in the way. See *HeldError.
	ErrHeld = errors.New("held by another")
	// ErrNotHeld: the claim certainly is not held, or not any more. See *NotHeldError.
	ErrNotHeld = errors.New("not held")
	// ErrRevoked: the claim was force-unlocked. It is an ErrNotHeld.
	ErrRevoked = fmt.Errorf("revoked by an operator: %w", ErrNotHeld)
	// ErrRejected: certainly not applied, and asking again does not help. See *RejectedError.
	ErrRejected = errors.New("rejected")
	// ErrStale: a record has another version than the caller thinks.
	ErrStale = errors.New("stale version")
	// ErrFenced: a record has seen a larger token.
	ErrFenced = errors.New("fenced: a larger token was seen")
	// ErrClosed: the store, or the client, is closed.
	ErrClosed = errors.New("closed")
)

// Certain tells whether err is a certain answer: nothing was applied. nil is
// certain too.
func Certain(err error) bool {
	return err == nil || errors.Is(err, ErrHeld) || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrRejected) ||
		errors.Is(err, ErrStale) || errors.Is(err, ErrFenced) || errors.Is(err, errors.ErrUnsupported)
}

// A HeldError is a certain no. It is an ErrHeld.
type HeldError struct {
	Name       string
	Holder     *Holder       // one that is in the way, if the store knows it
	Reserved   bool          // the name is free but reserved for places ahead in the line
	Place      uint64        // the place taken or refreshed, 0: none; a number is never reused on its name
	RetryAfter time.Duration // the first moment at which the answer could change with nobody acting; 0: unknown
	Deadlock   bool          // two holders want to grow, and each waits for the other (law 21)
}

// Error names the holder as far as it is known.
func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is ", e.Name)
	switch h := e.Holder; {
	case e.Deadlock:
		b.WriteString("held by another that waits to grow too: each would wait for the other")
	case h == nil && e.Reserved:
		b.WriteString("reserved for the line")
	case h == nil:
		b.WriteString("held by another")
	case h.Foreign:
		b.WriteString("held by " + h.who())
	case h.State == Held || h.State == Handed:
		fmt.Fprintf(&b, "held by %s (token %d)", h.who(), h.Token)
	default:
		fmt.Fprintf(&b, "%s, by %s (token %d)", h.State, h.who(), h.Token)
	}
	return b.String()
}

// Is makes it an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func (h *Holder) who() string {
	if h.Note == "" {
		return "another"
	}
	return h.Note
}

// A NotHeldError says that a claim is certainly not held. It is an ErrNotHeld.
type NotHeldError struct {
	Name string
	By   *Holder // who holds it now, if the store knows it
}

// Error names the successor if it is known.
func (e *NotHeldError) Error() string {
	switch {
	case e.By == nil:
		return fmt.Sprintf("%q: not held", e.Name)
	case e.By.Foreign:
		return fmt.Sprintf("%q: not held; now held by %s", e.Name, e.By.who())
	}
	return fmt.Sprintf("%q: not held; now %s by %s (token %d)", e.Name, e.By.State, e.By.who(), e.By.Token)
}

// Is makes it an ErrNotHeld.
func (e *NotHeldError) Is(target error) bool { return target == ErrNotHeld }

// A RejectedError says that a call was certainly not applied and why. It is an
// ErrRejected, and for want of a right or a password an [io/fs.ErrPermission] too.
type RejectedError struct {
	Name string // the name, key or other subject; may be ""
	Why  string
	Err  error // the cause, if there is one
}

// Rejectedf returns a *RejectedError; a %w in format sets its cause.
func Rejectedf(name, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &RejectedError{Name: name, Why: err.Error(), Err: errors.Unwrap(err)}
}

// Error says what was rejected and why.
func (e *RejectedError) Error() string {
	if e.Name == "" {
		return "rejected: " + e.Why
	}
	return fmt.Sprintf("%q rejected: %s", e.Name, e.Why)
}

// Is makes it an ErrRejected.
func (e *RejectedError) Is(target error) bool { return target == ErrRejected }

// Unwrap returns the cause.
func (e *RejectedError) Unwrap() error { return e.Err }
