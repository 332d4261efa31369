package driver

import (
	"errors"
	"fmt"
	"time"
)

// Facts is what a store promises. Every field is fixed when the store is opened.
type Facts struct {
	Driver   string   // "mem", "sqlite", ...
	Survival Survival // what frees the claim of a dead holder
	Modes    Mode     // the set of modes that it grants
	Fencing  Fencing  // what its tokens survive
	Ordered  bool     // it keeps a line (laws 23 to 30)

	HandOver time.Duration // how long a claim handed over lives until it is heard of; 0: it hands nothing over
	Slack    time.Duration // how much later than its TTL a claim may end, in the worst case (law 17)
	MinTTL   time.Duration // the shortest TTL that it takes
	MaxTTL   time.Duration // the longest; it bounds Patience, Keep and Delay too
	Step     time.Duration // TTLs are rounded up to a multiple of it
	MaxBatch int           // the most claims in one Renew

	Waives []Waiver // the laws that it does not keep
}

// A Waiver names a law that a store does not keep, and why.
type Waiver struct {
	Law int
	Why string
}

// Waived returns the reason why law is waived, or "".
func (f Facts) Waived(law int) string {
	for _, w := range f.Waives {
		if w.Law == law {
			return w.Why
		}
	}
	return ""
}

// Survival says what frees the claim of a holder that died.
type Survival uint8

// What frees a dead holder's claim.
const (
	ByTTL     Survival = iota + 1 // the store's clock
	BySession                     // the end of its session
)

// String returns "ttl" or "session".
func (s Survival) String() string {
	switch s {
	case ByTTL:
		return "ttl"
	case BySession:
		return "session"
	}
	return "unknown"
}

// Fencing says what the growth of tokens survives.
type Fencing uint8

// From the weakest to the strongest: each includes the ones before it.
const (
	NoFencing      Fencing = iota // there are no tokens to fence with
	WhileUp                       // as long as the store is up
	AcrossRestart                 // restarts that keep the data
	AcrossFailover                // the loss of any minority of servers
)

var fencings = [...]string{"none", "while up", "across restarts", "across failover"}

// String says it in words.
func (f Fencing) String() string {
	if int(f) < len(fencings) {
		return fencings[f]
	}
	return "unknown"
}

// RoundTTL rounds ttl up to the store's step (law 10). A TTL out of bounds is an
// error that names the bounds.
func (f Facts) RoundTTL(ttl time.Duration) (time.Duration, error) {
	switch {
	case ttl <= 0:
		return 0, fmt.Errorf("ttl %v: it must be positive", ttl)
	case ttl < f.MinTTL:
		return 0, fmt.Errorf("ttl %v: %s takes at least %v", ttl, f.Driver, f.MinTTL)
	case ttl > f.MaxTTL:
		return 0, fmt.Errorf("ttl %v: %s takes at most %v", ttl, f.Driver, f.MaxTTL)
	}
	if step := f.Step; step > 1 {
		if rest := ttl % step; rest != 0 {
			ttl += step - rest
		}
	}
	return ttl, nil
}

// unsupportedError is an errors.ErrUnsupported that says what is unsupported.
type unsupportedError struct{ msg string }

func (e *unsupportedError) Error() string { return e.msg }

func (e *unsupportedError) Is(target error) bool {
	return target == errors.ErrUnsupported
}

// Unsupportedf returns an error that is [errors.ErrUnsupported] and says what is
// not supported.
func Unsupportedf(format string, args ...any) error {
	return &unsupportedError{fmt.Sprintf(format, args...)}
}
