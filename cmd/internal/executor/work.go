package executor

import (
	"context"
	"io"
	"time"
)

// Work is done once.
type Work interface {
	// Run does it, writes what it says to out, and returns when nothing of it goes
	// on. An end of ctx stops it, with the cause as the reason.
	Run(ctx context.Context, lease Lease, limits Limits, out io.Writer) Result
}

// A Lease is a *dibs.Lease.
type Lease interface {
	Check() error
	Remaining() time.Duration
	Context() context.Context
}

// Limits bound the work.
type Limits struct {
	Timeout time.Duration // 0: none
	Grace   time.Duration // TERM to KILL
	Margin  time.Duration // the work is over this long before the end of trust
	Warn    bool          // a loss doesn't stop the work
}

// Margin is how much of a lock's trust is left for KILL to do its work, and for
// the scheduler to let it be sent.
func Margin(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 20*time.Millisecond), time.Second)
}

// reserve is how much trust it takes to stop the work.
func (l Limits) reserve() time.Duration {
	if l.Warn {
		return 0
	}
	return l.Grace + l.Margin
}

// An End says how the work ended.
type End string

// The ends.
const (
	Done    End = "done"    // by itself; Result.OK tells how
	Timeout End = "timeout" // its time was over
	Lost    End = "lost"    // the lock was lost, or could not be kept
	Stopped End = "stopped" // ctx ended
	Broken  End = "broken"  // it could not be started
)

// A Result is how the work ended.
type Result struct {
	End    End
	OK     bool   // Done, and it succeeded
	Code   int    // a command's exit code
	Status int    // an answer's status
	Reason string // for people; "" after a success
}
