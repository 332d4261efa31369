package dibs

import (
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
	passed := time.Since(k.start)
	if k.boot != nil {
		passed = max(passed, k.boot()-k.boot0)
	}
	return passed + 1
}
