package sqlitelock_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/sqlitelock"
)

// TestWhatIsOnTheDisk says which answers survive a power cut: all that draw a
// number, and none that only give back or prolong.
func TestWhatIsOnTheDisk(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "locks.db")
	s, other := openStore(t, path, nil), openStore(t, path, nil)
	check := func(what string, want bool) {
		t.Helper()
		if got := sqlitelock.Synced(t, s); got != want {
			t.Errorf("%s: on the disk when it is answered: %v, want %v", what, got, want)
		}
	}
	acquire := func(s *sqlitelock.Store, c driver.Claim) driver.Claim {
		t.Helper()
		g, err := s.Acquire(ctx, c)
		must(t, err)
		c.Token = g.Token
		return c
	}
	renew := func(c driver.Claim) {
		t.Helper()
		proofs, err := s.Renew(ctx, []driver.Claim{c})
		must(t, err)
		must(t, proofs[0].Err)
	}

	a := acquire(s, mutex("n", "a"))
	check("a grant", true)
	renew(a)
	check("a renewal", false)
	must(t, s.Release(ctx, a))
	check("a release that nobody waits for", false)
	a = acquire(s, mutex("n", "a2"))
	check("a grant after it", true)
	renew(driver.Claim{Name: a.Name, ID: a.ID, Units: a.Units, Capacity: a.Capacity, TTL: a.TTL})
	check("a renewal that may tell of a grant", true)

	// A waiter of our own, whom the view knows.
	b := mutex("n", "b")
	b.Patience = time.Minute
	if _, err := s.Acquire(ctx, b); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("err = %v, want held", err)
	}
	check("a place in line", true)
	must(t, s.Release(ctx, a))
	check("a hand-over", true)
	b = acquire(s, b)
	check("the adoption of a grant", true)

	// And one of another client, whom it does not know: the release is redone.
	c := mutex("n", "c")
	c.Patience = time.Minute
	if _, err := other.Acquire(ctx, c); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("err = %v, want held", err)
	}
	must(t, s.Release(ctx, b))
	check("a hand-over to another client", true)
	c = acquire(other, c)
	must(t, other.Release(ctx, c))

	_, err := s.Put(ctx, driver.Record{Key: "k", Value: []byte("v"), Retention: time.Hour})
	must(t, err)
	check("a record", true)
}

// TestJournalIsOnTheDisk: who was told that the journal knows of a release finds it
// there after a power cut.
func TestJournalIsOnTheDisk(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "locks.db"), &sqlitelock.Options{Journal: true})
	c := mutex("n", "a")
	g, err := s.Acquire(t.Context(), c)
	must(t, err)
	c.Token = g.Token
	must(t, s.Release(t.Context(), c))
	if !sqlitelock.Synced(t, s) {
		t.Error("a release in the journal is not on the disk when it is answered")
	}
}
