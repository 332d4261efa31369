package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var acquireLaws = []law{
	{number: 3, name: "RepeatedAcquireExtends", test: l3.run},
	{number: 4, name: "EndedIDIsANewClaim", test: l4.run},
	{number: 5, name: "ThreeAnswers", test: l5.run},
}

var l3 = parts{
	{"SameGrant", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		for _, c := range s.catalog() {
			c.Name, c.ID = fresh(), NewID()
			_, first := MustAcquire(t, a, c)
			for range 3 {
				_, again := MustAcquire(t, a, c)
				if same := again.Token == first.Token; !same && (s.Facts.Driver != "redlock" || again.Token < first.Token) {
					t.Fatalf("%v: token %d, repeated %d", c.Mode(), first.Token, again.Token)
				}
				if again.Token == first.Token && again.Fence != first.Fence || again.TookOver != first.TookOver {
					t.Fatalf("%v: granted %+v, repeated %+v", c.Mode(), first, again)
				}
			}
			refused(t, b, Mutex(c.Name, s.long()))
			// One Release ends it, however often it was asked for.
			MustRelease(t, a, c)
			free(t, b, c.Name, s.long())
		}
	}},
	{"FromThisCall", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		ttl := 3 * s.tick()
		m := Mutex(fresh(), ttl)
		MustAcquire(t, a, m)
		c := s.clock()
		c.after(s.tick())
		if _, g := MustAcquire(t, a, m); g.TTL < ttl {
			t.Fatalf("repeated: trusted for %v of %v", g.TTL, ttl)
		}
		again := s.clock()
		c.after(ttl)
		again.before(ttl)
		refused(t, b, Mutex(m.Name, ttl))
		again.after(ttl)
		free(t, b, m.Name, ttl)
	}},
	{"NeverShortens", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		ttl := 4 * s.tick()
		m := Mutex(fresh(), ttl)
		MustAcquire(t, a, m)
		c := s.clock()
		m.TTL = s.tick()
		MustAcquire(t, a, m)
		c.before(ttl)
		refused(t, b, Mutex(m.Name, ttl))
		c.after(ttl)
		free(t, b, m.Name, ttl)
	}},
	{"AnotherClaimIsRejected", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := Permit(fresh(), 2, 2, s.long())
		held, _ := MustAcquire(t, a, m)
		for what, change := range map[string]func(*driver.Claim){
			"units":    func(c *driver.Claim) { c.Units = 1 },
			"capacity": func(c *driver.Claim) { c.Capacity = 3 },
			"both":     func(c *driver.Claim) { c.Units, c.Capacity = 3, 3 },
			"from":     func(c *driver.Claim) { c.From = NewID() },
		} {
			other := m
			change(&other)
			if !s.has(other.Mode()) {
				continue
			}
			_, err := a.Acquire(t.Context(), other)
			isRejected(t, "a repeat with another "+what, err)
			refused(t, b, Mutex(m.Name, s.long()))
			proved(t, a, held)
		}
		MustRelease(t, a, m)
	}},
}

var l4 = parts{
	{"AfterRelease", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := Mutex(fresh(), s.long())
		first, _ := MustAcquire(t, a, m)
		MustRelease(t, a, first)
		second, _ := MustAcquire(t, a, first) // whatever token it brings along
		newer(t, first.Token, second.Token)
		refused(t, b, Mutex(m.Name, s.long()))
		gone(t, a, first)
		isNotHeld(t, a.Release(t.Context(), first))
		proved(t, a, second)
		refused(t, b, Mutex(m.Name, s.long()))
	}},
	{"AfterExpiry", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a := s.Open(t)
		m := Mutex(fresh(), s.tick())
		first, _ := MustAcquire(t, a, m)
		s.clock().after(m.TTL)
		second, g := MustAcquire(t, a, m) // nobody touched the name
		newer(t, first.Token, second.Token)
		if !g.TookOver {
			t.Fatal("the claim before it expired, and TookOver is not set")
		}
		gone(t, a, first)
		proved(t, a, second)
	}},
	{"AfterAnother", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m := Mutex(fresh(), s.tick())
		first, _ := MustAcquire(t, a, m)
		s.clock().after(m.TTL)
		between, _ := MustAcquire(t, b, Mutex(m.Name, s.long()))
		newer(t, first.Token, between.Token)
		refused(t, a, m)
		MustRelease(t, b, between)
		second, g := MustAcquire(t, a, m)
		newer(t, between.Token, second.Token)
		if g.TookOver {
			t.Fatal("the claim before it was released, and TookOver is set")
		}
	}},
}

// newer checks that a token is larger than an earlier one.
func newer(t testing.TB, old, token uint64) {
	t.Helper()
	if token <= old {
		t.Fatalf("token %d after %d", token, old)
	}
}

var l5 = parts{
	{"Rejected", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		for what, c := range badClaims(s) {
			_, err := a.Acquire(t.Context(), c)
			isRejected(t, what, err)
			if batch, ok := a.(driver.Batcher); ok {
				good := Mutex(fresh(), s.long())
				_, err := batch.AcquireAll(t.Context(), []driver.Claim{good, c})
				isRejected(t, "batch with "+what, err)
				free(t, b, good.Name, s.long())
			}
			if driver.CheckName(c.Name) == nil {
				free(t, b, c.Name, s.long()) // it was certainly not applied
				// Rejected it stays if another holds the name.
				MustAcquire(t, b, Mutex(c.Name, s.long()))
				_, err := a.Acquire(t.Context(), c)
				isRejected(t, what+" on a name that is held", err)
			}
		}
	}},
	{"FaultIsUnknown", func(t *testing.T, s *Stage) {
		b := s.Open(t)
		for _, fault := range Faults {
			for _, taken := range []bool{false, true} {
				what := fmt.Sprintf("%v, taken %v", fault, taken)
				a, link := s.Link(t)
				m := with(Mutex(fresh(), s.long()), 0)
				var holder driver.Claim
				if taken {
					holder, _ = MustAcquire(t, b, Mutex(m.Name, s.long()))
				}
				link.Set(fault)
				_, err := a.Acquire(bounded(t, s.tick()/2), m)
				isUnknown(t, what+": acquire", err)
				ps, err := a.Renew(bounded(t, s.tick()/2), []driver.Claim{m})
				isUnknown(t, what+": renew", err)
				if len(ps) > 0 {
					isUnknown(t, what+": proof", ps[0].Err)
				}
				link.Set(Pass)
				s.Settle()
				// The outcome is unknown and not lost: asking again finds out.
				if taken {
					refused(t, a, m)
					MustRelease(t, b, holder)
				}
				first, _ := MustAcquire(t, a, m)
				refused(t, b, Mutex(m.Name, s.long()))
				link.Set(fault)
				isUnknown(t, what+": release", a.Release(bounded(t, s.tick()/2), first))
				link.Set(Pass)
				s.Settle()
				if err := a.Release(t.Context(), first); err != nil {
					isNotHeld(t, err)
				}
				free(t, b, m.Name, s.long())
			}
		}
	}},
	{"EndedContextIsUnknown", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		// The cause belongs to the caller: whatever it is, it is not the store's
		// answer.
		for _, cause := range []error{
			context.Canceled, errors.New("no more time"), driver.ErrNotHeld, driver.ErrRevoked, driver.ErrRejected,
			&driver.HeldError{Name: m.Name}, errors.ErrUnsupported, driver.ErrStale, driver.ErrFenced,
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			for op, call := range calls(a, m) {
				isUnknown(t, fmt.Sprintf("%s with a ctx that ended by: %v", op, cause), call(ctx))
			}
		}
		proved(t, a, m)
	}},
	{"ClosedIsNotHeld", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		if err := a.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		for op, call := range calls(a, m) {
			err := call(t.Context())
			if !errors.Is(err, driver.ErrClosed) {
				t.Fatalf("%s on a closed store: %v", op, err)
			}
			isUnknown(t, op+" on a closed store", err)
		}
		if a.Facts().Driver != s.Facts.Driver {
			t.Fatal("a closed store has other facts")
		}
	}},
}

// badClaims are claims that no store takes, each on a fresh name.
func badClaims(s *Stage) map[string]driver.Claim {
	bad := make(map[string]driver.Claim)
	add := func(what string, change func(c *driver.Claim)) {
		c := Mutex(fresh(), s.long())
		change(&c)
		bad[what] = c
	}
	add("no name", func(c *driver.Claim) { c.Name = "" })
	add("no ID", func(c *driver.Claim) { c.ID = "" })
	add("from itself", func(c *driver.Claim) { c.From = c.ID })
	add("no units", func(c *driver.Claim) { c.Units = 0 })
	add("negative units", func(c *driver.Claim) { c.Units = -1 })
	add("no capacity", func(c *driver.Claim) { c.Capacity = 0 })
	add("more units than capacity", func(c *driver.Claim) { c.Units, c.Capacity = 3, 2 })
	add("two shared units", func(c *driver.Claim) { c.Units, c.Capacity = 2, driver.Unlimited })
	add("every shared unit", func(c *driver.Claim) { c.Units, c.Capacity = driver.Unlimited, driver.Unlimited })
	add("capacity over all", func(c *driver.Claim) { c.Units, c.Capacity = 1, driver.Unlimited+1 })
	add("negative patience", func(c *driver.Claim) { c.Patience = -1 })
	add("negative keep", func(c *driver.Claim) { c.Keep = -1 })
	add("negative delay", func(c *driver.Claim) { c.Delay = -1 })
	add("endless patience", func(c *driver.Claim) { c.Patience = s.Facts.MaxTTL + 1 })
	add("endless keep", func(c *driver.Claim) { c.Keep = s.Facts.MaxTTL + 1 })
	add("endless delay", func(c *driver.Claim) { c.Delay = s.Facts.MaxTTL + 1 })
	add("long note", func(c *driver.Claim) { c.Note = strings.Repeat("x", driver.MaxNote+1) })
	add("note in no encoding", func(c *driver.Claim) { c.Note = "a\xffb" })
	return bad
}

// calls is every call that s has, about c where it is about a claim. The ones
// that may answer "unsupported" on this very store are left out.
func calls(s driver.Store, c driver.Claim) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := s.Acquire(ctx, c); return err },
		"renew":   func(ctx context.Context) error { return RenewOne(ctx, s, c).Err },
		"release": func(ctx context.Context) error { return s.Release(ctx, c) },
	}
	unsupported := func(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
	if p, ok := s.(driver.Watcher); ok {
		all["watch"] = func(ctx context.Context) error {
			_, stop, err := p.Watch(ctx, c)
			if err == nil {
				stop()
			}
			return err
		}
	}
	if p, ok := s.(driver.Batcher); ok {
		all["acquire all"] = func(ctx context.Context) error {
			_, err := p.AcquireAll(ctx, []driver.Claim{c})
			return err
		}
	}
	if p, ok := s.(driver.Lister); ok {
		list := func(ctx context.Context) error {
			for _, err := range p.List(ctx, c.Name) {
				if err != nil {
					return err
				}
			}
			return nil
		}
		if !unsupported(list(context.Background())) {
			all["list"] = list
		}
	}
	if p, ok := s.(driver.Revoker); ok {
		call := func(ctx context.Context, token uint64) error {
			return p.Revoke(ctx, driver.Revocation{Name: c.Name, Token: token})
		}
		if !unsupported(call(context.Background(), c.Token+1000)) {
			all["revoke"] = func(ctx context.Context) error { return call(ctx, c.Token) }
		}
	}
	if p, ok := s.(driver.Records); ok {
		r := driver.Record{Key: c.Name, Value: []byte("x"), Retention: time.Minute}
		get := func(ctx context.Context) error { _, _, err := p.Get(ctx, r.Key); return err }
		if !unsupported(get(context.Background())) {
			all["get"] = get
			all["put"] = func(ctx context.Context) error { _, err := p.Put(ctx, r); return err }
			all["delete"] = func(ctx context.Context) error { return p.Delete(ctx, r.Key, 7) }
			all["list records"] = func(ctx context.Context) error {
				for _, err := range p.ListRecords(ctx, r.Key) {
					if err != nil {
						return err
					}
				}
				return nil
			}
		}
	}
	return all
}
