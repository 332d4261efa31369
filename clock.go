package dibs

import (
	"sync/atomic"
	"time"

	"github.com/dibslock/dibs/internal/boottime"
)

// A clock measures what has passed since the client was opened, by whichever
// went further: Go's monotonic clock, which sleeps with a suspended machine, or
// the boot-time clock, which does not (law 33). The wall clock plays no part.
type clock struct {
	start time.Time // carries a monotonic reading
	boot  boottime.Source
	boot0 time.Duration

	looked atomic.Int64 // when now was called last, by the monotonic clock
	ahead  atomic.Int64 // how much further the boot-time clock was by then, at least
}

func newClock() *clock {
	k := &clock{start: time.Now(), boot: boottime.Now()}
	if k.boot != nil {
		k.boot0 = k.boot()
	}
	return k
}

// now never goes back and is never 0, which stands for "not yet" elsewhere.
func (k *clock) now() time.Duration {
	if k.boot == nil {
		return time.Since(k.start) + 1
	}
	boot := k.boot() - k.boot0 // looked at first: so it is not taken for further ahead than it is
	passed := time.Since(k.start)
	if ahead := int64(boot - passed); ahead > k.ahead.Load() {
		k.ahead.Store(ahead) // if two do at once the smaller may stay: before is then earlier
	}
	k.looked.Store(int64(passed))
	return max(passed, boot) + 1
}

// fresh is how long a look at the boot-time clock serves before.
const fresh = 100 * time.Millisecond

// before is an instant that is not after now, and if the machine was not suspended
// just now is now: it costs no system call if there was one lately. That is good
// enough for when something was asked, since too early an instant shortens trust.
func (k *clock) before() time.Duration {
	passed := time.Since(k.start)
	if k.boot == nil || passed-time.Duration(k.looked.Load()) > fresh {
		return k.now()
	}
	return passed + time.Duration(k.ahead.Load()) + 1
}
