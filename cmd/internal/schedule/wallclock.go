package schedule

import (
	"time"

	"github.com/netresearch/go-cron"
)

// wallClock is an expression that names hours. The parser walks through days that
// have 24 hours each, as UTC has; what it finds is then looked up on the clock of
// the zone.
type wallClock struct {
	spec *cron.SpecSchedule
	loc  *time.Location
}

func (w wallClock) next(t time.Time) time.Time {
	naive := asUTC(t.In(w.loc))
	// The clock may have been put back: begin early, and pass what is not later.
	naive = naive.Add(-3 * time.Hour)
	for {
		if naive = w.spec.Next(naive); naive.IsZero() {
			return time.Time{}
		}
		if at := instant(naive, w.loc); at.After(t) {
			return at
		}
	}
}

// asUTC returns the reading of t's clock as if it were UTC's.
func asUTC(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// instant returns when a clock in loc first reads naive; the moment of the change
// if it never does.
func instant(naive time.Time, loc *time.Location) time.Time {
	_, before := naive.Add(-26 * time.Hour).In(loc).Zone()
	_, after := naive.Add(26 * time.Hour).In(loc).Zone()
	// With the larger offset the instant is the earlier one.
	for _, offset := range []int{max(before, after), min(before, after)} {
		at := naive.Add(-time.Duration(offset) * time.Second)
		if asUTC(at.In(loc)).Equal(naive) {
			return at
		}
	}
	at := naive.Add(-time.Duration(before) * time.Second)
	change, _ := at.In(loc).ZoneBounds()
	return change.UTC()
}
