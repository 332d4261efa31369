package dibs

import (
	"testing"
	"testing/synctest"
	"time"
)

// before is never after now, follows a suspended machine as soon as it was looked at,
// and looks by itself when that was long ago.
func TestClockBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep time.Duration
		looks := 0
		start := time.Now()
		k := &clock{start: start, boot: func() time.Duration { looks++; return time.Since(start) + asleep }}
		check := func(what string, want time.Duration, look bool) {
			t.Helper()
			old := looks
			if got := k.before(); got != want+1 || (looks > old) != look {
				t.Errorf("%s: before is %v and looked: %v; want %v, %v", what, got-1, looks > old, want, look)
			}
			if now := k.now(); now < k.before() {
				t.Errorf("%s: before is after now", what)
			}
		}
		time.Sleep(time.Second)
		check("never looked at", time.Second, true)
		time.Sleep(fresh)
		check("looked at just now", time.Second+fresh, false)
		asleep = time.Hour
		check("not yet looked at after a suspension", time.Second+fresh, false)
		check("looked at since", time.Second+fresh+time.Hour, false)
		asleep += time.Hour
		time.Sleep(fresh + 1)
		check("looked at long ago", time.Second+2*fresh+1+2*time.Hour, true)
	})
}
