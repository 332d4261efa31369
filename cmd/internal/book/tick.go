package book

import (
	"context"
	"slices"
	"time"
)

// A Tick is which of a job's ticks was decided last: that one, and all before it,
// have had their run, their skip, or their missed record.
type Tick struct {
	Last time.Time `json:"last"`
	Runs []string  `json:"runs,omitempty"` // what the last ones were to become, the newest last
}

// Had tells whether a tick of late was to become that run.
func (t Tick) Had(run string) bool { return slices.Contains(t.Runs, run) }

// lately is how many ticks are remembered: enough to find that of an instance
// that died with it.
const lately = 16

// Tick returns it, and the store's now. Of a job without any it begins now.
func (b *Book) Tick(ctx context.Context, job string) (Tick, time.Time, error) {
	var t Tick
	found, now, err := b.load(ctx, "tick/"+job, &t)
	if err != nil || found {
		return t, now, err
	}
	err = edit(ctx, b, "tick/"+job, stamp{}, func(v *Tick, found bool, at time.Time) (time.Duration, error) {
		if found {
			t = *v
			return 0, errSame
		}
		v.Last = at.UTC()
		t, now = *v, at
		return forever, nil
	})
	return t, now, err
}

// Claim decides the tick at, which follows from, and tells whether it is the
// caller's: false says that another was there first.
func (b *Book) Claim(ctx context.Context, job string, from, at time.Time, run string) (mine bool, err error) {
	err = edit(ctx, b, "tick/"+job, stamp{}, func(t *Tick, _ bool, _ time.Time) (time.Duration, error) {
		mine = t.Had(run) // this call's own, whose answer was lost
		if mine || !t.Last.Equal(from) {
			return 0, errSame
		}
		mine = true
		t.Last, t.Runs = at.UTC(), append(t.Runs, run)
		if over := len(t.Runs) - lately; over > 0 {
			t.Runs = slices.Delete(t.Runs, 0, over)
		}
		return forever, nil
	})
	return mine, err
}
