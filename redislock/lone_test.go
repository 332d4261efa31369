package redislock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// listed returns what is listed on name.
func listed(t *testing.T, s driver.Store, name string) []driver.Holder {
	t.Helper()
	var all []driver.Holder
	for h, err := range s.(driver.Lister).List(t.Context(), name) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// A lone claim's key has its own time as its clock, so a proof for another TTL
// has to change more than that, also if its key is kept as long beyond it.
func TestALoneClaimIsProvedForAnotherTTL(t *testing.T) {
	r := servers.SharedRedis(t)
	s := open(t, r.Addr(), space())
	for _, ttl := range []time.Duration{time.Minute, 2 * time.Minute, 10 * time.Minute, time.Minute} {
		c := drivertest.Mutex("name", 2*time.Minute)
		g, err := s.Acquire(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		c.Token, c.TTL = g.Token, ttl
		if p := drivertest.RenewOne(t.Context(), s, c); p.Err != nil {
			t.Fatal(p.Err)
		}
		all := listed(t, s, "name")
		if len(all) != 1 || all[0].TTL != ttl || all[0].Token != g.Token {
			t.Fatalf("proved for %v: %+v", ttl, all)
		}
		// It never shortens.
		if want := max(ttl, 2*time.Minute); all[0].Left > want+time.Millisecond || all[0].Left < want-time.Minute/2 {
			t.Errorf("proved for %v: %v are left", ttl, all[0].Left)
		}
		if err := s.Release(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// A lone claim is released also by a claim that differs in what does not matter
// for that, and never by one that has another ID or token.
func TestALoneClaimIsReleasedByIDAndToken(t *testing.T) {
	r := servers.SharedRedis(t)
	s := open(t, r.Addr(), space())
	c := drivertest.Mutex("name", time.Minute)
	for _, change := range []func(*driver.Claim){
		func(c *driver.Claim) { c.TTL = time.Second },
		func(c *driver.Claim) { c.TTL, c.Note, c.Units = 0, "", 0 },
		func(c *driver.Claim) { c.Delay = time.Hour },
		func(c *driver.Claim) { c.Token = 0 },
	} {
		g, err := s.Acquire(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []driver.Claim{
			{Name: c.Name, ID: c.ID, Token: g.Token + 1, TTL: c.TTL},
			{Name: c.Name, ID: c.ID, Token: g.Token + 1e6, TTL: c.TTL},
			{Name: c.Name, ID: c.ID[1:], Token: g.Token, TTL: c.TTL},
			{Name: c.Name, ID: c.ID + " ", Token: g.Token, TTL: c.TTL},
		} {
			if err := s.Release(t.Context(), wrong); !errors.Is(err, driver.ErrNotHeld) {
				t.Fatalf("released by %+v: %v", wrong, err)
			}
		}
		right := c
		right.Token = g.Token
		change(&right)
		if err := s.Release(t.Context(), right); err != nil {
			t.Fatalf("not released by %+v: %v", right, err)
		}
	}
}

// A key whose time somebody has taken away would never end.
func TestALoneClaimThatWasPersistedEnds(t *testing.T) {
	r := servers.SharedRedis(t)
	params := space()
	s := open(t, r.Addr(), params)
	c := drivertest.Mutex("name", time.Minute)
	g, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	keys := keysOf(t, r, params)
	at := slices.IndexFunc(keys, func(key string) bool { return do(t, r, "PERSIST", key) == int64(1) })
	if at < 0 {
		t.Fatalf("no key of %q had a time", keys)
	}
	if _, err := s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute)); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("another: %v", err)
	}
	if ms := do(t, r, "PTTL", keys[at]); ms.(int64) <= 0 {
		t.Errorf("its key has %d ms left", ms)
	}
	c.Token = g.Token
	if p := drivertest.RenewOne(t.Context(), s, c); p.Err != nil {
		t.Errorf("its own renewal: %v", p.Err)
	}
}
