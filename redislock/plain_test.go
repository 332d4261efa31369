package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// A lock that another program breaks is lost, and is no death.
func TestBrokenByAnother(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "layout=plain")
	breaks := [][]any{{"DEL", "name"}}
	for range 200 { // some are on the very point of ending when we look
		breaks = append(breaks, []any{"SET", "name", "mine now", "PX", "1"})
	}
	for _, breaks := range breaks {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
		do(t, r, breaks...)
		if p := drivertest.RenewOne(t.Context(), s, m); !errors.Is(p.Err, driver.ErrNotHeld) {
			t.Errorf("%q: renew: %v", breaks, p.Err)
		}
		var g driver.Grant
		soon(t, "the name is free", func() (ok bool) {
			n := drivertest.Mutex("name", time.Minute)
			var err error
			if g, err = s.Acquire(t.Context(), n); err == nil {
				drivertest.MustRelease(t, s, n)
			}
			return err == nil
		})
		if g.TookOver || g.Token <= m.Token {
			t.Errorf("%q: then %+v after token %d", breaks, g, m.Token)
		}
	}
}

// What will not end by itself, or is no lock at all, is reported and not waited
// for; a lock that another releases is had within a poll.
func TestWaitingForAnother(t *testing.T) {
	r := servers.Redis(t)
	client, err := dibs.Open(t.Context(), "redis://"+r.Addr()+"?layout=plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	for why, set := range map[string][]any{
		"time to live":      {"SET", "a", "for ever"},
		"another program u": {"HSET", "b", "x", "y"},
	} {
		do(t, r, set...)
		_, err := client.Mutex(set[1].(string)).Lock(t.Context())
		isRejected(t, err)
		if !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", set, err)
		}
	}

	do(t, r, "SET", "c", "for a while", "PX", "600000")
	time.AfterFunc(200*time.Millisecond, func() { r.Do("DEL", "c") })
	l, err := client.Mutex("c").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := do(t, r, "GET", "c"); v == nil || v == "for a while" {
		t.Errorf("locked, and the key has %v", v)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if v := do(t, r, "GET", "c"); v != nil {
		t.Errorf("released, and the key has %v", v)
	}
}
