package sqlitelock_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/sqlitelock"
)

func openStore(t testing.TB, path string, opts *sqlitelock.Options) *sqlitelock.Store {
	t.Helper()
	s, err := sqlitelock.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func dbPath(t testing.TB) string { return filepath.Join(t.TempDir(), "locks.db") }

func mutex(name, id string) driver.Claim {
	return driver.Claim{Name: name, ID: id, Units: 1, Capacity: 1, TTL: 10 * time.Second}
}

func TestAcquireReleaseAcrossStores(t *testing.T) {
	path := dbPath(t)
	a, b := openStore(t, path, nil), openStore(t, path, nil)
	ctx := t.Context()
	g, err := a.Acquire(ctx, mutex("n", "1"))
	if err != nil {
		t.Fatal(err)
	}
	c := mutex("n", "2")
	c.Patience = 5 * time.Second
	var held *driver.HeldError
	if _, err := b.Acquire(ctx, c); !errors.As(err, &held) || held.Place == 0 {
		t.Fatalf("got %v", err)
	}
	ch, stop, err := b.Watch(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := b.Acquire(ctx, c); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("got %v", err)
	}
	begin := time.Now()
	one := mutex("n", "1")
	one.Token = g.Token
	if err := a.Release(ctx, one); err != nil {
		t.Fatal(err)
	}
	select {
	case sig := <-ch:
		if sig.Grant == nil || sig.Place != held.Place || sig.Grant.Token <= g.Token {
			t.Fatalf("signal %+v", sig)
		}
		t.Logf("woken after %v, %+v", time.Since(begin), *sig.Grant)
	case <-time.After(5 * time.Second): // half of the TTL
		t.Fatal("no signal")
	}
	c.Token = 0
	ps, err := b.Renew(ctx, []driver.Claim{c})
	if err != nil || ps[0].Err != nil || ps[0].Grant == nil {
		t.Fatalf("%v %v", ps, err)
	}
	if err := b.Release(ctx, c); err != nil {
		t.Fatal(err)
	}
	for h, err := range a.List(ctx, "") {
		t.Errorf("left: %v %v", h, err)
	}
}
