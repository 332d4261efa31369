package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var limitLaws = []law{
	{number: 50, name: "LimitsHold", test: l50.run},
	{number: 50, name: "LimitsAreRefusedWithoutRecords", test: limitWithoutRecords},
}

// on are the parts of a primitive that stands on records. A store without them is
// looked at by a row of its own.
func on(ps parts) parts {
	for i, p := range ps {
		ps[i].test = func(t *testing.T, s *Stage) {
			if _, ok := records(t, s.Open(t)); !ok {
				s.skip(t, "the store keeps no records")
			}
			p.test(t, s)
		}
	}
	return ps
}

// lacking is a client of the store without its optional powers, or of the store
// itself if that keeps no records, and what was asked of it.
func lacking(t testing.TB, s *Stage) (*dibs.Client, *Recorder) {
	t.Helper()
	calls, store := new(Recorder), s.Open(t)
	if _, ok := records(t, store); ok {
		store = bare{store}
	}
	client, err := dibs.New(recorded{store, calls}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client, calls
}

// recorded records the calls of a store without powers.
type recorded struct {
	driver.Store
	calls *Recorder
}

func (r recorded) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	a := r.calls.Around(ctx, Call{Op: OpAcquire, Claims: []driver.Claim{c}}, func(ctx context.Context) Answer {
		g, err := r.Store.Acquire(ctx, c)
		return Answer{Grants: []driver.Grant{g}, Err: err}
	})
	return a.Grants[0], a.Err
}

func isUnsupported(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%s: %v, want it unsupported", what, err)
	}
}

func limitWithoutRecords(t *testing.T, s *Stage) {
	client, calls := lacking(t, s)
	_, err := client.Limit("limit", 1, time.Second).Take(t.Context())
	isUnsupported(t, "Take", err)
	_, err = client.Limit("limit", 1, time.Second).Wait(t.Context())
	isUnsupported(t, "Wait", err)
	if n := len(calls.Calls(OpAcquire)); n != 0 {
		t.Errorf("%d claims were asked for", n)
	}
}

// taken checks that k were taken, and that rest are left.
func taken(t testing.TB, l *dibs.Limiter, k, rest int) dibs.Quota {
	t.Helper()
	q, err := l.TakeN(t.Context(), k)
	if err != nil {
		t.Fatalf("take %d: %v", k, err)
	}
	if q.Remaining != rest {
		t.Fatalf("take %d: %d remain, want %d", k, q.Remaining, rest)
	}
	return q
}

// limited checks that k can't be taken, and why.
func limited(t testing.TB, l *dibs.Limiter, k int) *dibs.LimitedError {
	t.Helper()
	_, err := l.TakeN(t.Context(), k)
	var e *dibs.LimitedError
	if !errors.As(err, &e) || !errors.Is(err, dibs.ErrLimited) {
		t.Fatalf("take %d: %v, want a *LimitedError", k, err)
	}
	if e.RetryAfter <= 0 {
		t.Fatalf("take %d: %v without RetryAfter", k, err)
	}
	return e
}

// about checks a duration that the store told: exact in a bubble.
func (s *Stage) about(t testing.TB, what string, got, want time.Duration) {
	t.Helper()
	if s.Bubble && got != want || got > want || got < want-s.tick()/2 {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

var l50 = on(parts{
	{"BurstThenRate", func(t *testing.T, s *Stage) {
		step := s.tick()
		l := newRig(t, s, dibs.Settings{}).client.Limit(fresh(), 3, 3*step)
		c := s.clock()
		taken(t, l, 1, 2)
		taken(t, l, 2, 0)
		e := limited(t, l, 1)
		s.about(t, "RetryAfter", e.RetryAfter, step)
		s.about(t, "Reset", e.Reset, 3*step)
		c.before(step)
		limited(t, l, 1)
		c.after(step)
		taken(t, l, 1, 0)
		limited(t, l, 1)
		c.after(6 * step)
		s.about(t, "Reset", taken(t, l, 3, 0).Reset, 3*step) // and no more than three come back
	}},
	{"RefusalUsesNothing", func(t *testing.T, s *Stage) {
		step := s.tick()
		l := newRig(t, s, dibs.Settings{}).client.Limit(fresh(), 2, 2*step)
		c := s.clock()
		taken(t, l, 2, 0)
		for range 20 {
			limited(t, l, 1)
			limited(t, l, 2)
		}
		if q, err := l.Quota(t.Context()); err != nil || q.Remaining != 0 || q.Limit != 2 {
			t.Errorf("quota: %+v, %v", q, err)
		}
		c.after(2 * step)
		if q, err := l.Quota(t.Context()); err != nil || q.Remaining != 2 || q.Reset != 0 {
			t.Errorf("quota: %+v, %v", q, err)
		}
		taken(t, l, 2, 0)
	}},
	{"AllTogether", func(t *testing.T, s *Stage) {
		name, got := fresh(), atomic.Int32{}
		var wg sync.WaitGroup
		for range 3 {
			l := newRig(t, s, dibs.Settings{}).client.Limit(name, 7, s.long())
			for range 5 {
				wg.Go(func() { // ends with its take
					switch _, err := l.Take(t.Context()); {
					case err == nil:
						got.Add(1)
					case !errors.Is(err, dibs.ErrLimited):
						t.Errorf("take: %v", err)
					}
				})
			}
		}
		if wg.Wait(); got.Load() != 7 {
			t.Errorf("%d were taken of 7", got.Load())
		}
	}},
	{"WaitsForTheNextOne", func(t *testing.T, s *Stage) {
		l := newRig(t, s, dibs.Settings{}).client.Limit(fresh(), 1, s.tick())
		began := time.Now()
		for range 3 {
			if _, err := l.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 2*s.tick()-s.Grace() || s.Bubble && took != 2*s.tick() {
			t.Errorf("three at one per %v took %v", s.tick(), took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), s.tick()/10)
		defer cancel()
		_, err := l.Wait(ctx)
		var wait *dibs.WaitError
		if !errors.As(err, &wait) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that ended early: %v", err)
		}
	}},
	{"ByTheStoresClock", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
			a := do(ctx)
			if g, ok := a.Value.(got); ok {
				g.now = g.now.Add(-1000 * time.Hour) // a store whose clock is far behind
				a.Value = g
			}
			return a
		})
		l := r.client.Limit(fresh(), 1, s.tick())
		taken(t, l, 1, 0)
		s.about(t, "RetryAfter", limited(t, l, 1).RetryAfter, s.tick())
	}},
	{"AClockSetBackBlocksNobodyForLong", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		l := r.client.Limit(fresh(), 1, s.long())
		taken(t, l, 1, 0)
		r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
			a := do(ctx)
			if g, ok := a.Value.(got); ok {
				g.now = g.now.Add(-1000 * time.Hour)
				a.Value = g
			}
			return a
		})
		s.about(t, "RetryAfter", limited(t, l, 1).RetryAfter, s.long())
	}},
	{"TheLimitChanges", func(t *testing.T, s *Stage) {
		c, name := newRig(t, s, dibs.Settings{}).client, fresh()
		taken(t, c.Limit(name, 10, 10*s.long()), 8, 2)
		e := limited(t, c.Limit(name, 2, 2*s.long()), 1)
		if e.Limit != 2 || e.RetryAfter > s.long() {
			t.Errorf("after a change to 2: %+v", e)
		}
		if err := c.Limit(name, 2, s.long()).Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		taken(t, c.Limit(name, 2, 2*s.long()), 2, 0)
	}},
	{"ALostAnswerIsFound", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		l := r.client.Limit(fresh(), 2, s.long())
		for rest := 1; rest >= 0; rest-- {
			cut := atomic.Bool{}
			r.link.Pick(func(c Call) (Fault, bool) {
				return CutAfter, c.Op == OpPut && cut.CompareAndSwap(false, true)
			})
			taken(t, l, 1, rest)
		}
		limited(t, l, 1)
	}},
	{"SilenceIsNoLimit", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		r.link.Set(CutBefore)
		_, err := r.client.Limit(fresh(), 1, s.long()).Take(t.Context())
		if !errors.Is(err, dibs.ErrUnknown) || errors.Is(err, dibs.ErrLimited) {
			t.Errorf("take from a store that is down: %v, want ErrUnknown", err)
		}
	}},
	{"TheLastWordIsToldOfAWait", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{TTL: s.TTL(20 * time.Second)}) // a call may last longer than the wait
		var calls atomic.Int32
		r.link.Pick(func(Call) (Fault, bool) {
			if calls.Add(1) <= 3 {
				return CutBefore, true
			}
			return BlackHole, true // the wait ends in this one
		})
		ctx, cancel := context.WithTimeout(t.Context(), s.TTL(time.Second))
		defer cancel()
		_, err := r.client.Limit(fresh(), 1, s.long()).Take(ctx)
		var wait *dibs.WaitError
		if !errors.As(err, &wait) || !errors.Is(wait.Last, ErrCut) {
			t.Errorf("take that waited for a store that is down: %v, want that it was cut", err)
		}
	}},
	{"BadLimitsAreRejected", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		for what, l := range map[string]*dibs.Limiter{
			"none":            r.client.Limit("limit", 0, time.Second),
			"no time":         r.client.Limit("limit", 1, 0),
			"no name":         r.client.Limit("", 1, time.Second),
			"a long name":     r.client.Limit(string(make([]byte, driver.MaxName)), 1, time.Second),
			"too quick":       r.client.Limit("limit", 10, 9),
			"too long":        r.client.Limit("limit", 10, 1<<62),
			"a bad sibling's": r.client.With(dibs.Settings{TTL: -5}).Limit("limit", 1, time.Second),
		} {
			if _, err := l.Take(t.Context()); !errors.Is(err, dibs.ErrRejected) {
				t.Errorf("%s: %v, want it rejected", what, err)
			}
		}
		l := r.client.Limit("limit", 2, time.Second)
		for _, k := range []int{-1, 0, 3} {
			if _, err := l.TakeN(t.Context(), k); !errors.Is(err, dibs.ErrRejected) {
				t.Errorf("%d of 2: %v, want it rejected", k, err)
			}
		}
		if n := len(r.calls.Calls(OpGet)) + len(r.calls.Calls(OpPut)); n != 0 {
			t.Errorf("%d calls were made", n)
		}
	}},
})
