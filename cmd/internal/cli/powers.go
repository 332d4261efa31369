package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// deaths tells what frees the key of a holder that died, unless the store has told.
func (d *doctor) deaths(store driver.Store) {
	const check = "death"
	for _, f := range d.found.Checks {
		if f.Check == check {
			return
		}
	}
	if store.Facts().Survival == driver.BySession {
		d.notef(fine, check, "a dead holder's keys are free when its session ends")
		return
	}
	d.notef(info, check, "a dead holder's keys are free when its TTL is over")
}

// journal tells what history can. It asks as history does: some stores show no
// journal to a client that writes none.
func (d *doctor) journal(ctx context.Context) {
	store, err := d.place.openToRead(ctx)
	if err != nil {
		d.fail("journal", err)
		return
	}
	defer func() { _ = store.Close() }() // nothing was left in it
	j, ok := store.(driver.Journal)
	if !ok {
		d.notef(info, "journal", "the store keeps none: dibs history can't tell who held what")
		return
	}
	var n int
	var first driver.Event
	for e, err := range j.Events(ctx, "", 0) {
		if err != nil {
			d.fail("journal", d.place.cannot(canTellHistory, "", err))
			return
		}
		if n++; n == 1 {
			first = e
		}
	}
	text := "empty"
	if n > 0 {
		text = fmt.Sprintf("%d events since %s", n, moment(first.At))
	}
	if !d.place.journals() {
		d.note(warning, "journal", "off (journal=off in the store's URL), "+text, "without it, dibs history can't tell who held what through this URL")
		return
	}
	d.notef(fine, "journal", "on, %s", text)
}

// skew is how far the store's clock may be from this host's before the moments of
// the history confuse.
const skew = 2 * time.Second

// clock compares the store's clock with this host's.
func (d *doctor) clock(ctx context.Context, store driver.Store) {
	const exclusion = "no lock hangs on it: TTLs are measured by the store's clock alone, and trust by this host's clock that nobody sets"
	r, ok := store.(driver.Records)
	if !ok {
		d.notef(info, "clock", "the store does not tell its time; %s", exclusion)
		return
	}
	before := time.Now()
	_, now, err := r.Get(ctx, "dibs/now")
	if err != nil {
		d.fail("clock", d.place.cannot("ask for the time", "", err))
		return
	}
	after := time.Now()
	var off time.Duration // beyond what the call itself explains
	switch {
	case now.Before(before):
		off = now.Sub(before)
	case now.After(after):
		off = now.Sub(after)
	}
	text := fmt.Sprintf("the store's differs from this host's by %s; %s", short(off.Abs()), exclusion)
	if off.Abs() > skew {
		d.note(warning, "clock", text, "the moments in dibs history are the store's")
		return
	}
	d.note(fine, "clock", text, "")
}
