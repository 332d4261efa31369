package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrStale: a newer token was seen; certainly nothing was written. See
	// *StaleError, which has the one exception.
	ErrStale = errors.New("stale fence")
	// ErrNoFence: the lease has no token, so there is nothing to guard with.
	ErrNoFence = errors.New("no fence")
)

// A StaleError says that the lock was granted again since the lease that was
// offered: its holder has lost it, whatever it believes, and must stop. Trying
// again under the same lease is of no use. It is an ErrStale.
type StaleError struct {
	Name        string // of the lock
	Offered     uint64
	Newest      uint64 // the largest token that the resource has seen
	Interrupted bool   // by a Gate, after the request had begun: it may have had effects
}

// Error says it in one line.
func (e *StaleError) Error() string {
	what := "refused"
	if e.Interrupted {
		what = "interrupted"
	}
	return fmt.Sprintf("stale fence: %s: %q was granted again since: offered %d, and %d has been seen", what, e.Name, e.Offered, e.Newest)
}

// Is makes it an ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

type noFenceError struct{ name string }

func (e *noFenceError) Error() string {
	return fmt.Sprintf("no fence: the lease on %q has fence 0, which can't be compared: counted claims (semaphores) and claims on several names have none, nor have stores without tokens; guard with an exclusive or shared lease", e.name)
}

func (e *noFenceError) Is(target error) bool { return target == ErrNoFence }

type tooLargeError struct {
	name  string
	token uint64
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("fence of %q: the token %d is larger than %d, the largest that guards compare", e.name, e.token, uint64(MaxToken))
}
