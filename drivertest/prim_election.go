package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var electionLaws = []law{
	{number: 54, name: "OneLeader", test: l54.run},
}

// A candidate leads until it is told to stop, again and again.
type candidate struct {
	*rig
	election *dibs.Election
	begun    chan context.Context // the ctx of each reign
	linger   chan struct{}        // if it is not nil, fn returns only after it is closed
	ended    chan error           // what Lead returned
	cancel   context.CancelFunc
}

// stand lets r's client campaign for name. inside counts those who lead.
func stand(t testing.TB, r *rig, name string, inside *atomic.Int32, linger chan struct{}) *candidate {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{rig: r, election: r.client.Election(name), begun: make(chan context.Context, 64), linger: linger, ended: make(chan error, 1), cancel: cancel}
	go func() { // ends with ctx
		c.ended <- c.election.Lead(ctx, func(ctx context.Context) error {
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d lead", n)
			}
			c.begun <- ctx
			<-ctx.Done()
			if linger != nil {
				<-linger
			}
			inside.Add(-1)
			return ctx.Err()
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-c.ended
	})
	return c
}

// leads waits until c leads, and returns its ctx.
func (c *candidate) leads(t testing.TB) context.Context {
	t.Helper()
	select {
	case ctx := <-c.begun:
		return ctx
	case <-time.After(10*c.ttl + c.Grace()):
		t.Fatal("it does not get to lead")
		return nil
	}
}

// refusals is how often it asked and was refused.
func (c *candidate) refusals() (n int) {
	for _, call := range c.calls.Calls(OpAcquire) {
		if errors.Is(call.Err, driver.ErrHeld) {
			n++
		}
	}
	return n
}

// over waits for the end of Lead.
func (c *candidate) over(t testing.TB) error {
	t.Helper()
	select {
	case err := <-c.ended:
		c.ended <- err // for the clean-up
		return err
	case <-time.After(10*c.ttl + c.Grace()):
		t.Fatal("Lead does not return")
		return nil
	}
}

var l54 = parts{
	{"TheyTakeTurns", func(t *testing.T, s *Stage) {
		var inside atomic.Int32
		name := fresh()
		a := stand(t, newRig(t, s, dibs.Settings{}), name, &inside, nil)
		ctx := a.leads(t)
		b := stand(t, newRig(t, s, dibs.Settings{}), name, &inside, nil)
		r, asked := b.rig, make(map[*candidate]int)
		for range 2 {
			r.Eventually(t, 5*r.ttl, "the other has asked and was refused", func() bool { return b.refusals() > asked[b] })
			asked[a], asked[b] = a.refusals(), b.refusals()
			if l, ok := a.election.Leading(); !ok || l.Name() != name {
				t.Fatalf("leading: %v, %t", l, ok)
			}
			if l, ok := b.election.Leading(); ok {
				t.Fatalf("the other leads too: %v", l)
			}
			if err := a.election.StepDown(t.Context()); err != nil {
				t.Fatalf("step down: %v", err)
			}
			if cause := context.Cause(ctx); !errors.Is(cause, dibs.ErrSteppedDown) {
				t.Errorf("cause: %v", cause)
			}
			if l, ok := a.election.Leading(); ok {
				t.Errorf("it leads after it stepped down: %v", l)
			}
			if s.Facts.Ordered { // it is behind the other in line
				ctx = b.leads(t)
				a, b = b, a
				continue
			}
			select {
			case ctx = <-a.begun:
			case ctx = <-b.begun:
				a, b = b, a
			case <-time.After(10*r.ttl + s.Grace()):
				t.Fatal("nobody leads any more")
			}
		}
		if err := b.election.StepDown(t.Context()); err != nil {
			t.Errorf("step down of one that doesn't lead: %v", err)
		}
		a.cancel()
		if err := a.over(t); !errors.Is(err, context.Canceled) {
			t.Errorf("Lead: %v", err)
		}
	}},
	{"ALossIsNoEnd", func(t *testing.T, s *Stage) {
		var inside atomic.Int32
		linger := make(chan struct{})
		r := newRig(t, s, dibs.Settings{})
		c := stand(t, r, fresh(), &inside, linger)
		ctx := c.leads(t)
		if h, err := c.election.Leader(t.Context()); err != nil || h.Token == 0 {
			t.Errorf("leader: %+v, %v", h, err)
		}
		r.link.On(BlackHole, OpRenew)
		if !done(ctx, 2*r.ttl+r.Grace()) || !errors.Is(context.Cause(ctx), dibs.ErrLost) {
			t.Fatalf("a leader that hears nothing goes on; cause %v", context.Cause(ctx))
		}
		// It knows of its loss, whatever the store still lists.
		if l, ok := c.election.Leading(); ok {
			t.Errorf("leading: %v", l)
		}
		if h, err := c.election.Leader(t.Context()); !errors.Is(err, dibs.ErrNoLeader) && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("leader: %+v, %v; want ErrNoLeader", h, err)
		}
		r.link.Pick(nil)
		close(linger)
		if ctx := c.leads(t); ctx.Err() != nil {
			t.Error("the second time begins with a ctx that has ended")
		}
	}},
	{"TheStoreMayBeDown", func(t *testing.T, s *Stage) {
		var inside atomic.Int32
		r := newRig(t, s, dibs.Settings{})
		r.link.Set(CutBefore)
		c := stand(t, r, fresh(), &inside, nil)
		time.Sleep(2 * r.ttl)
		r.link.Set(Pass)
		c.leads(t)
	}},
	{"NobodyLeadsBeforeItHasStopped", func(t *testing.T, s *Stage) {
		for what, stop := range map[string]func(c *candidate){
			"ctx":       func(c *candidate) { c.cancel() },
			"step down": func(c *candidate) { go func() { _ = c.election.StepDown(context.Background()) }() }, // ends with the reign
			"close": func(c *candidate) {
				c.left = true
				go func() { // ends with the reign
					ctx, cancel := context.WithTimeout(context.Background(), 20*c.ttl)
					defer cancel()
					_ = c.client.Close(ctx)
				}()
			},
		} {
			var inside atomic.Int32
			name, linger := fresh(), make(chan struct{})
			c := stand(t, newRig(t, s, dibs.Settings{}), name, &inside, linger)
			ctx := c.leads(t)
			next := stand(t, newRig(t, s, dibs.Settings{}), name, &inside, nil)
			stop(c)
			if !done(ctx, c.ttl) {
				t.Fatalf("%s: its ctx does not end", what)
			}
			time.Sleep(2 * c.ttl) // longer than it would be held without a renewal
			if len(next.begun) > 0 {
				t.Errorf("%s: another leads before it has stopped", what)
			}
			c.cancel()
			close(linger)
			next.leads(t)
			next.cancel()
			next.over(t)
		}
	}},
	{"WhoReturnsIsDone", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		bad := errors.New("bad")
		for _, want := range []error{nil, bad} {
			e := r.client.Election(fresh()) // each its own: nobody waits for what another kept
			if err := e.Lead(t.Context(), func(context.Context) error { return want }); !errors.Is(err, want) {
				t.Errorf("Lead: %v, want %v", err, want)
			}
			r.isFree(t, e.Name())
		}
		e := r.client.Election(fresh())
		func() {
			defer func() {
				if recover() != "oh" {
					t.Error("the panic was swallowed")
				}
			}()
			_ = e.Lead(t.Context(), func(context.Context) error { panic("oh") })
		}()
		r.isFree(t, e.Name())
		ctx, cancel := context.WithCancel(t.Context())
		if err := r.client.Election(fresh()).Lead(ctx, func(context.Context) error { cancel(); return bad }); !errors.Is(err, bad) || !errors.Is(err, context.Canceled) {
			t.Errorf("Lead: %v, want both its error and the ctx's", err)
		}
		if err := r.client.Election("\n").Lead(t.Context(), nothing); !errors.Is(err, dibs.ErrRejected) {
			t.Errorf("a bad name: %v", err)
		}
	}},
	{"TheyAreObserved", func(t *testing.T, s *Stage) {
		if _, ok := list(t, s.Open(t), "none"); !ok {
			r := newRig(t, s, dibs.Settings{})
			_, err := r.client.Election(fresh()).Leader(t.Context())
			isUnsupported(t, "Leader", err)
			for _, err := range r.client.Election(fresh()).Observe(t.Context()) {
				isUnsupported(t, "Observe", err)
			}
			return
		}
		var inside atomic.Int32
		name := fresh()
		r := newRig(t, s, dibs.Settings{Poll: s.tick() / 10})
		watcher := r.client.Election(name)
		if h, err := watcher.Leader(t.Context()); !errors.Is(err, dibs.ErrNoLeader) {
			t.Errorf("before: %+v, %v", h, err)
		}
		var (
			mu   sync.Mutex // guards seen
			seen []string
			wg   sync.WaitGroup
		)
		sees := func(want string) {
			t.Helper()
			r.Eventually(t, 5*r.ttl, "seen "+want, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return fmt.Sprint(seen) == want
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wg.Go(func() { // ends with ctx
			for h, err := range watcher.Observe(ctx) {
				text := h.Note
				if errors.Is(err, dibs.ErrUnknown) {
					text = "down"
				} else if err != nil {
					text = err.Error()
				}
				mu.Lock()
				seen = append(seen, "<"+text+">")
				mu.Unlock()
			}
		})
		sees("[<>]")
		c := stand(t, newRig(t, s, dibs.Settings{Note: "ann"}), name, &inside, nil)
		c.leads(t)
		sees("[<> <ann>]")
		// A reader, or a claim on a longer name, is no leader.
		MustAcquire(t, r.other, Mutex(name+"/more", s.long()))
		if h, err := watcher.Leader(t.Context()); err != nil || h.Note != "ann" || h.State != driver.Held {
			t.Errorf("leader: %+v, %v", h, err)
		}
		time.Sleep(s.tick() / 2) // nothing new
		c.cancel()
		c.over(t)
		sees("[<> <ann> <>]")
		r.link.Set(CutBefore)
		sees("[<> <ann> <> <down>]")
		r.link.Set(Pass)
		sees("[<> <ann> <> <down> <>]")
		cancel()
		wg.Wait()
		sees("[<> <ann> <> <down> <> <context canceled>]")
	}},
}
