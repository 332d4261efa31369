package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

const (
	samples  = 7
	probeTTL = 10 * time.Second
	// slowTrip is worth a warning: a default TTL bears it, but a person notices.
	slowTrip = time.Second
)

// A roundTrip is how long the store takes to grant.
type roundTrip struct {
	Samples int     `json:"samples"`
	Median  float64 `json:"median_ms"`
	Slowest float64 `json:"slowest_ms"`
}

// probe takes and gives back a key of its own a few times, and tells whether the
// store did what it should.
func (d *doctor) probe(ctx context.Context, store driver.Store) bool {
	var trips []time.Duration
	for range samples {
		took, err := d.cycle(ctx, store)
		if err != nil {
			d.fail("locks", d.place.cannot("lock", "", err))
			return false
		}
		trips = append(trips, took)
	}
	if err := d.excludes(ctx, store); err != nil {
		d.fail("locks", err)
		return false
	}
	d.notef(fine, "locks", "granted, renewed, refused to another, and given back")
	slices.Sort(trips)
	median, slowest := trips[len(trips)/2], trips[len(trips)-1]
	ms := func(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }
	d.found.RoundTrip = &roundTrip{Samples: samples, Median: ms(median), Slowest: ms(slowest)}
	text := fmt.Sprintf("a grant takes %s (median of %d; slowest %s)", trip(median), samples, trip(slowest))
	if slowest > slowTrip {
		d.note(warning, "round trip", text, "the store is slow, or far away")
	} else {
		d.note(fine, "round trip", text, "")
	}
	d.ttl(slowest, store.Facts())
	return true
}

func trip(t time.Duration) string {
	if t < 10*time.Millisecond {
		return t.Round(10 * time.Microsecond).String()
	}
	return t.Round(time.Millisecond).String()
}

func probeClaim(name string, f driver.Facts) driver.Claim {
	return driver.Claim{
		Name: name, ID: uuid.NewString(), Units: 1, Capacity: 1,
		TTL: min(max(probeTTL, f.MinTTL), f.MaxTTL), Note: caption{argv: []string{"dibs", "doctor"}}.note(),
	}
}

// cycle is one grant, its renewal, and its release; it returns how long the grant
// took. A store that lacks exclusive claims is none.
func (d *doctor) cycle(ctx context.Context, store driver.Store) (took time.Duration, err error) {
	c := probeClaim("dibs/doctor/"+uuid.NewString(), store.Facts())
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if e := store.Release(ctx, c); err == nil {
			err = e
		}
	}()
	began := time.Now()
	g, err := store.Acquire(ctx, c)
	if err != nil {
		return 0, err
	}
	took, c.Token = time.Since(began), g.Token
	proofs, err := store.Renew(ctx, []driver.Claim{c})
	if err != nil {
		return 0, err
	}
	return took, proofs[0].Err
}

// excludes makes sure that another client is refused what the first one holds.
func (d *doctor) excludes(ctx context.Context, store driver.Store) error {
	other, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }() // nothing was left in it
	mine := probeClaim("dibs/doctor/"+uuid.NewString(), store.Facts())
	g, err := store.Acquire(ctx, mine)
	if err != nil {
		return d.place.cannot("lock", "", err)
	}
	mine.Token = g.Token
	theirs := probeClaim(mine.Name, store.Facts())
	_, err = other.Acquire(ctx, theirs)
	if err == nil {
		_ = other.Release(ctx, theirs)
	}
	if e := store.Release(ctx, mine); e != nil {
		return d.place.cannot("give back", "", e)
	}
	switch {
	case errors.Is(err, dibs.ErrHeld):
		return nil
	case err == nil:
		return failf(exitConfig, "two clients of %s held one key: nobody else shares this store\nchoose one that all processes reach, with --store or DIBS_STORE_URL", d.place)
	}
	return d.place.cannot("ask as a second client", "", err)
}

// ttl suggests the shortest TTL that is safe: a renewal is sent after a third of
// it, and repeated until it is over. Two tries in a row may fail, each as slow as
// four times the slowest trip seen.
func (d *doctor) ttl(slowest time.Duration, f driver.Facts) {
	const floor = 3 * time.Second // below it a busy host's pauses decide
	safe := max(12*slowest, floor, f.MinTTL)
	if rest := safe % time.Second; rest != 0 {
		safe += time.Second - rest
	}
	safe = min(safe, f.MaxTTL)
	d.found.TTL = new(safe.Milliseconds())
	text := fmt.Sprintf("--ttl %s or longer is safe with this round trip", short(safe))
	if def := 30 * time.Second; safe > def {
		d.note(warning, "ttl", text, "the default of "+short(def)+" is too short")
		return
	}
	d.note(fine, "ttl", text+"; the default is 30s", "")
}
