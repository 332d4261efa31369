package memlock

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Idle names, subscriptions and records leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		ctx := t.Context()
		claim := func(i int, id string) driver.Claim {
			return driver.Claim{Name: fmt.Sprint("name ", i), ID: id, Units: 1, Capacity: 1, TTL: time.Second, Patience: time.Second}
		}
		for i := range 50 {
			holder, waiter := claim(i, "holder"), claim(i, "waiter")
			if _, err := s.Acquire(ctx, holder); err != nil {
				t.Fatal(err)
			}
			_, stop, err := s.Watch(ctx, waiter)
			if err != nil {
				t.Fatal(err)
			}
			s.Acquire(ctx, waiter)
			s.Renew(ctx, []driver.Claim{claim(i, "nobody"), claim(-i-1, "nobody")})
			s.Release(ctx, claim(-i-1, "nobody"))
			s.Revoke(ctx, driver.Revocation{Name: fmt.Sprint("no name ", i), Token: 1})
			s.AcquireAll(ctx, []driver.Claim{claim(-i-1, "all"), holder, claim(i, "late")})
			if i%2 == 0 {
				s.Release(ctx, holder)
				s.Release(ctx, waiter)
			}
			stop()
			s.Put(ctx, driver.Record{Key: fmt.Sprint(i), Retention: time.Second})
		}
		time.Sleep(10 * time.Second)
		for i := range 50 { // the dead ones are told of once more, and then forgotten
			next := claim(i, "next")
			if _, err := s.Acquire(ctx, next); err != nil {
				t.Fatal(err)
			}
			s.Release(ctx, next)
		}
		for range s.ListRecords(ctx, "") {
		}
		if m := s.m; len(m.names) != 0 || len(m.subs) != 0 || len(s.subs) != 0 || len(m.records) != 0 {
			t.Fatalf("left: %d names, %d and %d subscriptions, %d records", len(m.names), len(m.subs), len(s.subs), len(m.records))
		}
	})
}
