package redislock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// Nothing but the mark is left when nobody holds or waits: not after releases,
// not after hand-overs, and not after everybody has died.
func TestOnlyTheMarkStays(t *testing.T) {
	r := servers.SharedRedis(t)
	params := space()
	s := open(t, r.Addr(), params)
	bare := func() bool {
		ks := keysOf(t, r, params)
		return len(ks) == 1 && strings.HasSuffix(ks[0], ":mark")
	}
	for _, die := range []bool{false, true} {
		for i := range 30 {
			var all []driver.Claim
			for _, c := range []driver.Claim{
				drivertest.Mutex("", time.Second), drivertest.Reader("", time.Second), drivertest.Reader("", time.Second),
				drivertest.Permit("", 1, 2, time.Second),
			} {
				c.Name, c.Patience = fmt.Sprint("name", i), time.Second
				c.Delay = time.Duration(i%3) * 100 * time.Millisecond
				s.Acquire(t.Context(), c)
				all = append(all, c)
			}
			for _, c := range all {
				if !die {
					drivertest.MustRelease(t, s, c)
				}
			}
		}
		if !die && !bare() {
			t.Fatalf("everything was given back, and there is %q", keysOf(t, r, params))
		}
	}
	soon(t, "the keys expire", bare)
}

// A call that finds that a holder has died lets the next one in, but for a renewal,
// and if there is none keeps nothing but the memory of the death: not until those that
// had waited would have lost their patience.
func TestACallThatFindsADeathActsOnIt(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second // the next one asks, and is seen, before the end of one
	r := servers.SharedRedis(t)
	for what, call := range map[string]func(driver.Store, driver.Claim) error{
		"release": func(s driver.Store, c driver.Claim) error { return s.Release(t.Context(), c) },
		"renew":   func(s driver.Store, c driver.Claim) error { return drivertest.RenewOne(t.Context(), s, c).Err },
		"revoke": func(s driver.Store, c driver.Claim) error {
			return s.(driver.Revoker).Revoke(t.Context(), driver.Revocation{Name: c.Name, Token: c.Token})
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			params := space()
			s := open(t, r.Addr(), params)
			state := func() (all []driver.State) {
				for _, h := range listed(t, s, "name") {
					all = append(all, h.State)
				}
				return all
			}
			m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", ttl))
			w := drivertest.Mutex("name", ttl)
			w.Patience = time.Hour
			if _, err := s.Acquire(t.Context(), w); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
			soon(t, "the holder dies", func() bool { return slices.Equal(state(), []driver.State{driver.Waiting}) })
			if err := call(s, m); !errors.Is(err, driver.ErrNotHeld) {
				t.Errorf("of the dead holder: %v", err)
			}
			if what == "renew" {
				s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute)) // asks, and is refused
			}
			all := listed(t, s, "name")
			if len(all) != 1 || all[0].State != driver.Handed {
				t.Fatalf("the next one was not let in: %+v", all)
			}
			w.Token = all[0].Token
			soon(t, "it dies too", func() bool { return len(state()) == 0 })
			if err := call(s, w); !errors.Is(err, driver.ErrNotHeld) {
				t.Errorf("of the next one: %v", err)
			}
			for _, k := range keysOf(t, r, params) {
				if left := do(t, r, "PTTL", k).(int64); left > 60_000 {
					t.Errorf("%q is kept for %d ms", k, left)
				}
			}
		})
	}
}

// The state that a name has while it is in use always expires by itself.
func TestEveryKeyExpires(t *testing.T) {
	r := servers.SharedRedis(t)
	params := space() + "&journal=on"
	s := open(t, r.Addr(), params)
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	for range 3 {
		w := drivertest.Reader("name", time.Minute)
		w.Patience = time.Minute
		s.Acquire(t.Context(), w)
	}
	drivertest.MustRelease(t, s, m)
	s.(driver.Records).Put(t.Context(), driver.Record{Key: "k", Retention: time.Minute})
	for _, k := range keysOf(t, r, params) {
		forever := strings.HasSuffix(k, ":mark") || strings.HasSuffix(k, ":journal")
		if left := do(t, r, "PTTL", k).(int64); (left < 0) != forever || left > 10*60_000 {
			t.Errorf("%q lives for %d ms", k, left)
		}
	}
}

func TestWrongTypesAreRejected(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "")
	for i, set := range [][]any{{"HSET", "dibs:{name}", "a", "b"}, {"SET", "dibs:{name}", "of another program"}} {
		do(t, r, "DEL", "dibs:{name}")
		do(t, r, set...)
		m := drivertest.Mutex("name", time.Minute)
		_, err := s.Acquire(t.Context(), m)
		isRejected(t, err)
		isRejected(t, s.Release(t.Context(), m))
		good, _ := drivertest.MustAcquire(t, s, drivertest.Mutex(fmt.Sprint("good", i), time.Minute))
		ps, err := s.Renew(t.Context(), []driver.Claim{m, good})
		if err != nil || ps[1].Err != nil {
			t.Fatalf("a bad key spoils a good one: %v, %v", ps, err)
		}
		isRejected(t, ps[0].Err)
	}
}

// The numbers that are given out are exact at any size, and whatever the clock.
func TestNumbersAreExact(t *testing.T) {
	for _, mark := range []uint64{1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 - 100} {
		r := servers.SharedRedis(t)
		params := space()
		s := open(t, r.Addr(), params)
		do(t, r, "SET", strings.TrimPrefix(params, "prefix=")+":mark", mark)
		var got []uint64
		m, g := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
		got = append(got, g.Token)
		w := drivertest.Mutex("name", time.Minute)
		w.Patience = time.Minute
		s.Acquire(t.Context(), w)
		near := m
		near.Token++
		if err := s.Release(t.Context(), near); err == nil {
			t.Error("released by the next token")
		}
		drivertest.MustRelease(t, s, m)
		p := drivertest.RenewOne(t.Context(), s, w)
		got = append(got, p.Grant.Token)
		if want := []uint64{mark + 1, mark + 3}; !slices.Equal(got, want) {
			t.Errorf("mark %d: tokens %d, want %d", mark, got, want)
		}
	}
}
