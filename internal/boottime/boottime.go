// Package boottime reads the clock that also counts the time during which the
// machine was suspended, which Go's monotonic clock does not.
package boottime

import (
	"sync/atomic"
	"time"
)

// A Source reads a clock that never stands still; only differences mean
// something.
type Source func() time.Duration

var swapped atomic.Pointer[Source]

// Now returns the source to use from here on, or nil if there is none: on
// systems that offer none, and in a testing/synctest bubble, whose time it does
// not follow.
func Now() Source {
	if s := swapped.Load(); s != nil {
		return *s
	}
	if read == nil || inBubble() {
		return nil
	}
	return read
}

// Swap makes Now return s until restore is called. It is for tests, which must
// not run in parallel meanwhile.
func Swap(s Source) (restore func()) {
	old := swapped.Swap(&s)
	return func() { swapped.Store(old) }
}

// inBubble tells whether the caller runs in a synctest bubble: there time.Now
// is invented, and years from what the system says.
func inBubble() bool {
	real, ok := realtime()
	if !ok {
		return false
	}
	d := time.Since(real)
	return d < -24*time.Hour || d > 24*time.Hour
}
