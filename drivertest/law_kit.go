package drivertest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

// parts are the parts of one law's test. They share a storage and use distinct
// names.
type parts []part

type part struct {
	name string
	test func(t *testing.T, s *Stage)
}

// run runs the parts: one after the other in a bubble, which has no sub-tests
// and where time costs nothing, and side by side elsewhere. There most of them
// sleep most of the time: go test -parallel 64 is not too much.
func (ps parts) run(t *testing.T, s *Stage) {
	row := path.Base(t.Name())
	s.knowsParts(t, row, ps)
	for _, p := range ps {
		why := s.unfit[row+"/"+p.name]
		if s.Bubble {
			if why != "" {
				t.Logf("%s: the store can't play it: %s", p.name, why)
				continue
			}
			t.Log(p.name)
			done := make(chan struct{})
			go func() { // ends with the part, also if that skips or fails
				defer close(done)
				p.test(t, s)
			}()
			if <-done; t.Failed() {
				return
			}
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			if why != "" {
				t.Skip("the store can't play it: " + why)
			}
			t.Parallel()
			p.test(t, s)
		})
	}
}

// knowsParts fails if a part of row that is said to be unfit is none.
func (s *Stage) knowsParts(t *testing.T, row string, ps parts) {
	t.Helper()
	for unfit := range s.unfit {
		of, name, ok := strings.Cut(unfit, "/")
		if ok && of == row && !slices.ContainsFunc(ps, func(p part) bool { return p.name == name }) {
			t.Errorf("%s is said to be unfit, and is no part of the law's test", unfit)
		}
	}
}

// ordered runs the parts on stores that keep a line.
func (ps parts) ordered(t *testing.T, s *Stage) {
	if !s.Facts.Ordered {
		t.Skip("the store keeps no line")
	}
	ps.run(t, s)
}

// skip ends a part that the store has no use for. The other parts go on.
func (s *Stage) skip(t testing.TB, why string) {
	t.Helper()
	if s.Bubble {
		t.Log("skipped: " + why)
		runtime.Goexit()
	}
	t.Skip(why)
}

// power returns the optional power P of store, and skips the part if it lacks it.
func power[P any](t testing.TB, s *Stage, store driver.Store) P {
	t.Helper()
	p, ok := store.(P)
	if !ok {
		s.skip(t, fmt.Sprintf("the store is no %T", (*P)(nil)))
	}
	return p
}

// tick is the unit in which the laws measure time: short enough to wait for,
// long enough that half of it is enough for a slow machine.
func (s *Stage) tick() time.Duration { return s.TTL(max(time.Second, 4*s.Grace())) }

// long is a TTL that no test outlives.
func (s *Stage) long() time.Duration { return s.TTL(300 * s.tick()) }

// has tells whether the store grants every mode of m.
func (s *Stage) has(m driver.Mode) bool { return s.Facts.Modes&m == m }

// fresh makes a name that no other part uses.
func fresh() string { return "law/" + NewID() }

// A clock tells when something that began at its start is to end.
type clock struct {
	s     *Stage
	start time.Time
}

// clock starts a clock: right after the call that begins what it measures.
func (s *Stage) clock() clock { return clock{s, time.Now()} }

// before sleeps until shortly before d is over by the store's clock.
func (c clock) before(d time.Duration) {
	margin := c.s.tick() / 2
	if c.s.Bubble {
		margin = max(c.s.Facts.Step, 1)
	}
	time.Sleep(time.Until(c.start.Add(d - margin)))
}

// after sleeps until d is over by the store's clock, and not longer.
func (c clock) after(d time.Duration) {
	d += c.s.Grace()
	if !c.s.Bubble {
		d += 10 * time.Millisecond
	}
	time.Sleep(time.Until(c.start.Add(d)))
}

// left checks that got, which the store told just now, is what is left of d.
func (c clock) left(t testing.TB, what string, got, d time.Duration) {
	t.Helper()
	want := d - time.Since(c.start)
	if c.s.Bubble {
		if got != want {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		return
	}
	if got <= 0 || got < want-c.s.tick()/2 || got > want+c.s.Grace()+c.s.tick()/2 {
		t.Fatalf("%s: %v, want about %v", what, got, want)
	}
}

// die lets the holder or waiter behind client go silent for ttl, or kills it if
// that is what ends its claims. Nothing else may be on client.
func (s *Stage) die(t testing.TB, client driver.Store, ttl time.Duration) {
	t.Helper()
	c := s.clock()
	if s.Facts.Survival == driver.BySession {
		if s.Kill == nil {
			t.Fatal("the store frees by session: its Storage must be able to kill a client")
		}
		s.Kill(client)
		ttl = 0
	}
	c.after(ttl)
}

// byTTL skips the part on a store that does not free by TTL.
func (s *Stage) byTTL(t testing.TB) {
	t.Helper()
	if s.Facts.Survival != driver.ByTTL {
		s.skip(t, "the store does not free by TTL")
	}
}

// need skips the part on a store that does not grant every mode of m.
func (s *Stage) need(t testing.TB, m driver.Mode) {
	t.Helper()
	if !s.has(m) {
		s.skip(t, fmt.Sprintf("the store does not grant all of: %v", m))
	}
}

// with returns c with patience, which puts it in line if it is refused.
func with(c driver.Claim, patience time.Duration) driver.Claim {
	c.Patience = patience
	return c
}

// isHeld checks that err is a certain no and nothing else.
func isHeld(t testing.TB, err error) *driver.HeldError {
	t.Helper()
	var e *driver.HeldError
	if !errors.As(err, &e) || !errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNotHeld) || errors.Is(err, driver.ErrRejected) {
		t.Fatalf("got %v (%T), want a *HeldError", err, err)
	}
	return e
}

// isNotHeld checks that err says that the claim is gone, by itself and not by an
// operator.
func isNotHeld(t testing.TB, err error) *driver.NotHeldError {
	t.Helper()
	var e *driver.NotHeldError
	if !errors.As(err, &e) || !errors.Is(err, driver.ErrNotHeld) || errors.Is(err, driver.ErrHeld) ||
		errors.Is(err, driver.ErrRejected) || errors.Is(err, driver.ErrRevoked) {
		t.Fatalf("got %v (%T), want a *NotHeldError", err, err)
	}
	return e
}

// isRejected checks that err says that asking again does not help.
func isRejected(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, driver.ErrRejected) || errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNotHeld) {
		t.Fatalf("%s: got %v (%T), want an ErrRejected", what, err, err)
	}
}

// isUnknown checks that err is no certain answer.
func isUnknown(t testing.TB, what string, err error) {
	t.Helper()
	if driver.Certain(err) {
		t.Fatalf("%s: got %v (%T), want an unknown error", what, err, err)
	}
}

// refused checks that c is refused.
func refused(t testing.TB, s driver.Store, c driver.Claim) *driver.HeldError {
	t.Helper()
	_, err := s.Acquire(t.Context(), c)
	e := isHeld(t, err)
	if e.Name != c.Name {
		t.Fatalf("a refusal of %q is about %q", c.Name, e.Name)
	}
	return e
}

// queued checks that c is refused and has a place in line.
func queued(t testing.TB, s driver.Store, c driver.Claim) uint64 {
	t.Helper()
	e := refused(t, s, c)
	if e.Place == 0 {
		t.Fatalf("%q: refused without a place", c.Name)
	}
	return e.Place
}

// proved checks that c is held.
func proved(t testing.TB, s driver.Store, c driver.Claim) driver.Proof {
	t.Helper()
	p := RenewOne(t.Context(), s, c)
	if p.Err != nil {
		t.Fatalf("renew %q: %v", c.Name, p.Err)
	}
	return p
}

// waits checks that c is in line, and refreshes its place.
func waits(t testing.TB, s driver.Store, c driver.Claim) *driver.HeldError {
	t.Helper()
	c.Token = 0
	return isHeld(t, RenewOne(t.Context(), s, c).Err)
}

// gone checks that neither claim nor place of c is there any more.
func gone(t testing.TB, s driver.Store, c driver.Claim) *driver.NotHeldError {
	t.Helper()
	return isNotHeld(t, RenewOne(t.Context(), s, c).Err)
}

// granted checks that the place of c was handed the name, and proves it.
func granted(t testing.TB, s driver.Store, c driver.Claim) driver.Claim {
	t.Helper()
	c.Token = 0
	p := proved(t, s, c)
	if p.Grant == nil || p.Grant.Token == 0 {
		t.Fatalf("renew %q without a token: proved, and no grant came with it", c.Name)
	}
	c.Token = p.Grant.Token
	return c
}

// free checks that name is free for everybody, and leaves it so.
func free(t testing.TB, s driver.Store, name string, ttl time.Duration) driver.Grant {
	t.Helper()
	c, g := MustAcquire(t, s, Mutex(name, ttl))
	MustRelease(t, s, c)
	return g
}

// list returns what the store lists of the names that begin with prefix; ok is
// false if it lists nothing at all.
func list(t testing.TB, s driver.Store, prefix string) (hs []driver.Holder, ok bool) {
	t.Helper()
	l, ok := s.(driver.Lister)
	if !ok {
		return nil, false
	}
	for h, err := range l.List(t.Context(), prefix) {
		if errors.Is(err, errors.ErrUnsupported) {
			return nil, false
		}
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		hs = append(hs, h)
	}
	return hs, true
}

// knowsHolders tells whether the store knows who holds: one that frees with a
// session may list only what the holders themselves answer.
func (s *Stage) knowsHolders(t testing.TB, store driver.Store, prefix string) bool {
	t.Helper()
	_, lists := list(t, store, prefix)
	return lists && s.Facts.Survival == driver.ByTTL
}

// states checks, on a store that lists, the states of the claims and places of
// name, in their order.
func states(t testing.TB, s driver.Store, name string, want ...driver.State) []driver.Holder {
	t.Helper()
	hs, ok := list(t, s, name)
	if !ok {
		return nil
	}
	match := len(hs) == len(want)
	for i := 0; match && i < len(hs); i++ {
		match = hs[i].State == want[i] && hs[i].Name == name
	}
	if !match {
		t.Fatalf("%q is listed as %+v, want %v", name, hs, want)
	}
	return hs
}

// revoke takes c away. The store must be a driver.Revoker.
func revoke(t testing.TB, s driver.Store, c driver.Claim, now bool) {
	t.Helper()
	r := driver.Revocation{Name: c.Name, Token: c.Token, Now: now, Reason: "a law's test"}
	if err := s.(driver.Revoker).Revoke(t.Context(), r); err != nil {
		t.Fatalf("revoke %q: %v", c.Name, err)
	}
}

// watch subscribes on behalf of c until the test ends. The store must be a
// driver.Watcher.
func watch(t testing.TB, s driver.Store, c driver.Claim) <-chan driver.Signal {
	t.Helper()
	signals, stop, err := s.(driver.Watcher).Watch(t.Context(), c)
	if err != nil {
		t.Fatalf("watch %q: %v", c.Name, err)
	}
	t.Cleanup(stop)
	return signals
}

// heard returns the next signal, which must come soon.
func heard(t testing.TB, s *Stage, signals <-chan driver.Signal) driver.Signal {
	t.Helper()
	s.Settle()
	select {
	case sig := <-signals:
		return sig
	case <-time.After(5*time.Second + s.Grace()):
		t.Fatal("no signal came")
		return driver.Signal{}
	}
}

// silent checks that no signal that is about a place has come. A signal that
// only says "ask again" is allowed on any store but the reference.
func silent(t testing.TB, s *Stage, signals <-chan driver.Signal) {
	t.Helper()
	s.Settle()
	select {
	case sig := <-signals:
		if s.Bubble || sig.Grant != nil {
			t.Fatalf("a signal came to one that it is not for: %+v", sig)
		}
	default:
	}
}

// bounded is a ctx that ends after d.
func bounded(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
