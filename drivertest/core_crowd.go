package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs"
)

func waitersRefreshTogether(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{Patience: s.TTL(2 * time.Second)})
	r.needsLine(t)
	const waiters, refreshes = 30, 4
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range waiters {
		name := fmt.Sprint("line ", i)
		MustAcquire(t, r.other, Mutex(name, r.TTL(20*r.ttl)))
		wg.Go(func() { // ends with ctx
			if _, err := r.client.Mutex(name).Lock(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Lock: %v", err)
			}
		})
	}
	time.Sleep(refreshes * s.TTL(2*time.Second) / 2)
	cancel()
	wg.Wait()
	claims, calls := 0, r.calls.Calls(OpRenew)
	for _, c := range calls {
		claims += len(c.Claims)
	}
	if s.Bubble && (claims == 0 || len(calls) > claims/10) {
		t.Errorf("%d calls refreshed %d places", len(calls), claims)
	}
}

// asksOnceInACrowd has a waiter subscribe first where others were in the way
// lately: it then asks once for each grant. Where nobody is it does not subscribe.
func asksOnceInACrowd(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{Patience: s.TTL(20 * time.Second)})
	r.needsLine(t)
	if !s.Bubble {
		t.Skip("needs a bubble") // so that no poll comes in between
	}
	for n := range 4 {
		held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
		asks, watches := len(r.calls.Calls(OpAcquire)), len(r.calls.Calls(OpWatch))
		l := r.lock(t)
		MustRelease(t, r.other, held)
		if err := l.got(t, r.waiting()).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		asks, watches = len(r.calls.Calls(OpAcquire))-asks, len(r.calls.Calls(OpWatch))-watches
		if want := max(2-n, 1); asks != want || watches != 1 {
			t.Errorf("wait %d: %d asks and %d subscriptions", n+1, asks, watches)
		}
	}
	var watches int
	for range 10 {
		watches = len(r.calls.Calls(OpWatch))
		l, err := r.client.Mutex(lockName).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.calls.Calls(OpWatch)) != watches {
		t.Error("it still subscribes, long after the others have gone")
	}
}
