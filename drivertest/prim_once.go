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

var onceLaws = []law{
	{number: 51, name: "OnceIsOnce", test: l51.run},
	{number: 51, name: "OnceIsRefusedWithoutRecords", test: onceWithoutRecords},
}

func onceWithoutRecords(t *testing.T, s *Stage) {
	client, calls := lacking(t, s)
	ran, err := client.Once("key", time.Hour).Do(t.Context(), nothing)
	if isUnsupported(t, "Do", err); ran {
		t.Error("it ran")
	}
	if n := len(calls.Calls(OpAcquire)); n != 0 {
		t.Errorf("%d claims were asked for", n)
	}
}

func nothing(context.Context) error { return nil }

// runs demands of a Do that it ran, or not, without an error.
func runs(t testing.TB, o *dibs.Once, want bool) {
	t.Helper()
	in := false
	ran, err := o.Do(t.Context(), func(context.Context) error { in = true; return nil })
	if err != nil {
		t.Fatalf("do: %v", err)
	}
	if ran != want || in != want {
		t.Fatalf("ran: %t, and said %t; want %t", in, ran, want)
	}
}

// is demands a status.
func status(t testing.TB, o *dibs.Once, want dibs.OnceStatus) dibs.OnceState {
	t.Helper()
	st, err := o.State(t.Context())
	if err != nil || st.Status != want {
		t.Fatalf("state: %+v, %v; want %q", st, err, want)
	}
	return st
}

// interrupt has a client of its own begin a run of key, and then nothing is heard
// of it any more.
func interrupt(t testing.TB, s *Stage, key string, keep time.Duration) {
	t.Helper()
	r := newRig(t, s, dibs.Settings{})
	r.left = true
	begun, ended, stop := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { // ends when the test does
		defer close(ended)
		_, _ = r.client.Once(key, keep).Do(context.Background(), func(context.Context) error {
			close(begun)
			<-stop
			return errors.New("too late")
		})
	}()
	t.Cleanup(func() { <-ended })
	t.Cleanup(func() { close(stop) }) // before the client is closed
	select {
	case <-begun:
	case <-ended:
		t.Fatal("the run did not begin")
	}
	r.link.Set(CutBefore)
	if s.Facts.Survival == driver.BySession {
		s.Crash(r.inner)
	}
}

var l51 = on(parts{
	{"AmongMany", func(t *testing.T, s *Stage) {
		key, ran := fresh(), atomic.Int32{}
		var wg sync.WaitGroup
		for range 3 {
			o := newRig(t, s, dibs.Settings{}).client.Once(key, time.Hour)
			for range 5 {
				wg.Go(func() { // ends with its call
					result, mine, err := o.Call(t.Context(), func(context.Context, dibs.Run) ([]byte, error) {
						ran.Add(1)
						time.Sleep(s.tick() / 4) // the others find it pending
						return []byte("receipt"), nil
					})
					if err != nil || string(result) != "receipt" || mine && ran.Load() != 1 {
						t.Errorf("call: %q, %t, %v", result, mine, err)
					}
				})
			}
		}
		if wg.Wait(); ran.Load() != 1 {
			t.Errorf("it ran %d times", ran.Load())
		}
	}},
	{"IsHeldMeanwhile", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		o := r.client.Once(fresh(), time.Hour)
		ran, err := o.Do(t.Context(), func(ctx context.Context) error {
			status(t, o, dibs.Pending)
			if ran, err := o.TryDo(t.Context(), nothing); ran || !errors.Is(err, dibs.ErrHeld) {
				t.Errorf("another, meanwhile: %t, %v; want ErrHeld", ran, err)
			}
			return nil
		})
		if !ran || err != nil {
			t.Errorf("do: %t, %v", ran, err)
		}
		status(t, o, dibs.Done)
		if ran, err := o.TryDo(t.Context(), nothing); ran || err != nil {
			t.Errorf("another, afterwards: %t, %v", ran, err)
		}
	}},
	{"TheDeadAreTakenOver", func(t *testing.T, s *Stage) {
		key := fresh()
		interrupt(t, s, key, time.Hour)
		c := s.clock()
		r := newRig(t, s, dibs.Settings{})
		o := r.client.Once(key, time.Hour)
		status(t, o, dibs.Pending)
		if s.Facts.Survival != driver.BySession {
			if ran, err := o.TryDo(t.Context(), nothing); ran || !errors.Is(err, dibs.ErrHeld) {
				t.Fatalf("before the dead one's lock ended: %t, %v; want ErrHeld", ran, err)
			}
		}
		again := false
		result, ran, err := o.Call(t.Context(), func(_ context.Context, run dibs.Run) ([]byte, error) {
			again = run.Again
			if run.Fence == 0 {
				t.Error("a run without a fence")
			}
			return []byte("second"), nil
		})
		if err != nil || !ran || !again || string(result) != "second" {
			t.Fatalf("call: %q, %t, again %t, %v", result, ran, again, err)
		}
		if took := time.Since(c.start); took > 2*r.ttl+s.Grace()+5*time.Second {
			t.Errorf("the takeover took %v with a TTL of %v", took, r.ttl)
		}
		runs(t, o, false)
	}},
	{"OrRefused", func(t *testing.T, s *Stage) {
		key := fresh()
		interrupt(t, s, key, time.Hour)
		o := newRig(t, s, dibs.Settings{}).client.Once(key, time.Hour).With(dibs.OnceOptions{Interrupted: dibs.Refuse})
		ran, err := o.Do(t.Context(), nothing)
		var e *dibs.InterruptedError
		if ran || !errors.As(err, &e) || !errors.Is(err, dibs.ErrInterrupted) || e.State.Status != dibs.Pending {
			t.Fatalf("do: %t, %v; want an *InterruptedError", ran, err)
		}
		status(t, o, dibs.Pending)
		if err := o.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		runs(t, o, true)
	}},
	{"AnErrorIsForgotten", func(t *testing.T, s *Stage) {
		o := newRig(t, s, dibs.Settings{}).client.Once(fresh(), time.Hour).With(dibs.OnceOptions{Interrupted: dibs.Refuse})
		bad := errors.New("no money")
		if ran, err := o.Do(t.Context(), func(context.Context) error { return bad }); !ran || !errors.Is(err, bad) {
			t.Fatalf("do: %t, %v", ran, err)
		}
		status(t, o, dibs.Absent)
		runs(t, o, true)
	}},
	{"APanicInterrupts", func(t *testing.T, s *Stage) {
		o := newRig(t, s, dibs.Settings{}).client.Once(fresh(), time.Hour)
		func() {
			defer func() {
				if recover() != "oh" {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = o.Do(t.Context(), func(context.Context) error { panic("oh") })
		}()
		status(t, o, dibs.Pending)
		again := false
		if _, _, err := o.TryCall(t.Context(), func(_ context.Context, run dibs.Run) ([]byte, error) {
			again = run.Again
			return nil, nil
		}); err != nil || !again {
			t.Errorf("after a panic: again %t, %v", again, err)
		}
	}},
	{"ResultAndRequest", func(t *testing.T, s *Stage) {
		o := newRig(t, s, dibs.Settings{}).client.Once(fresh(), time.Hour)
		first := o.With(dibs.OnceOptions{Request: "sha256:aa"})
		call := func(o *dibs.Once, want bool) {
			t.Helper()
			result, ran, err := o.Call(t.Context(), func(context.Context, dibs.Run) ([]byte, error) { return []byte{0, 1, 255}, nil })
			if err != nil || ran != want || string(result) != "\x00\x01\xff" {
				t.Fatalf("call: %q, %t, %v", result, ran, err)
			}
		}
		call(first, true)
		call(first, false)
		call(o, false)
		st := status(t, o, dibs.Done)
		if st.Request != "sha256:aa" || string(st.Result) != "\x00\x01\xff" || st.Token == 0 || st.Lock == "" || st.Since.IsZero() || st.Left <= 0 || st.Left > time.Hour {
			t.Errorf("state: %+v", st)
		}
		other := o.With(dibs.OnceOptions{Request: "sha256:bb"})
		ran, err := other.Do(t.Context(), nothing)
		var e *dibs.MismatchError
		if ran || !errors.As(err, &e) || !errors.Is(err, dibs.ErrMismatch) {
			t.Errorf("another request: %t, %v; want a *MismatchError", ran, err)
		}
		// A result that is too long is told of, and what was done stays done.
		big := newRig(t, s, dibs.Settings{}).client.Once(fresh(), time.Hour)
		_, ran, err = big.Call(t.Context(), func(context.Context, dibs.Run) ([]byte, error) { return make([]byte, dibs.MaxResult+1), nil })
		if !ran || !errors.Is(err, dibs.ErrRejected) {
			t.Errorf("a long result: %t, %v; want it rejected", ran, err)
		}
		runs(t, big, false)
	}},
	{"AnotherRequestWhileItRuns", func(t *testing.T, s *Stage) {
		key := fresh()
		c := newRig(t, s, dibs.Settings{}).client
		func() {
			defer func() { _ = recover() }()
			_, _ = c.Once(key, time.Hour).With(dibs.OnceOptions{Request: "a"}).Do(t.Context(), func(context.Context) error { panic("oh") })
		}()
		if ran, err := c.Once(key, time.Hour).With(dibs.OnceOptions{Request: "b"}).Do(t.Context(), nothing); ran || !errors.Is(err, dibs.ErrMismatch) {
			t.Errorf("another request: %t, %v; want a *MismatchError", ran, err)
		}
	}},
	{"ForAsLongAsItIsKept", func(t *testing.T, s *Stage) {
		o := newRig(t, s, dibs.Settings{}).client.Once(fresh(), 2*s.tick())
		runs(t, o, true)
		c := s.clock()
		c.before(2 * s.tick())
		runs(t, o, false)
		c.after(2 * s.tick())
		runs(t, o, true)
	}},
	{"AStaleRunCannotWrite", func(t *testing.T, s *Stage) {
		key := fresh()
		a, b := newRig(t, s, dibs.Settings{}), newRig(t, s, dibs.Settings{})
		a.left = true
		_, ran, err := a.client.Once(key, time.Hour).Call(t.Context(), func(ctx context.Context, _ dibs.Run) ([]byte, error) {
			a.link.Set(BlackHole)
			<-ctx.Done() // the lock is lost
			o := b.client.Once(key, time.Hour)
			_, ran, err := o.Call(t.Context(), func(context.Context, dibs.Run) ([]byte, error) { return []byte("second"), nil })
			if !ran || err != nil {
				t.Errorf("the second run: %t, %v", ran, err)
			}
			a.link.Set(Pass)
			return []byte("first"), nil
		})
		if !ran || !errors.Is(err, dibs.ErrLost) {
			t.Errorf("the first run: %t, %v; want ErrLost", ran, err)
		}
		if st := status(t, b.client.Once(key, time.Hour), dibs.Done); string(st.Result) != "second" {
			t.Errorf("remembered: %q, want the second run's", st.Result)
		}
	}},
	{"LostAnswersAreFound", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		o := r.client.Once(fresh(), time.Hour).With(dibs.OnceOptions{Interrupted: dibs.Refuse})
		cuts := 0
		r.link.Pick(func(c Call) (Fault, bool) {
			if c.Op != OpPut {
				return Pass, false
			}
			cuts++
			return CutAfter, cuts%2 == 1
		})
		runs(t, o, true)
		if cuts < 2 {
			t.Errorf("%d puts were hit", cuts)
		}
		runs(t, o, false)
	}},
	{"DoneIsWrittenWithACancelledCtx", func(t *testing.T, s *Stage) {
		o := newRig(t, s, dibs.Settings{}).client.Once(fresh(), time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		if ran, err := o.Do(ctx, func(context.Context) error { cancel(); return nil }); !ran || err != nil {
			t.Errorf("do: %t, %v", ran, err)
		}
		runs(t, o, false)
	}},
	{"UnderALeaseOfTheCallers", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		lease := r.tryLock(t)
		o := r.client.Once(fresh(), time.Hour).With(dibs.OnceOptions{Lease: lease})
		_, ran, err := o.Call(t.Context(), func(_ context.Context, run dibs.Run) ([]byte, error) {
			if run.Fence != lease.Fence() {
				t.Errorf("fence %d, want the lease's %d", run.Fence, lease.Fence())
			}
			if ran, err := o.Do(t.Context(), nothing); ran || !errors.Is(err, dibs.ErrHeld) {
				t.Errorf("two under one lease: %t, %v; want ErrHeld", ran, err)
			}
			return nil, nil
		})
		if !ran || err != nil {
			t.Fatalf("call: %t, %v", ran, err)
		}
		if st := status(t, o, dibs.Done); st.Lock != lockName || st.Token != lease.Token() {
			t.Errorf("written under %q, token %d", st.Lock, st.Token)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		fresh := r.client.Once(fresh(), time.Hour).With(dibs.OnceOptions{Lease: lease})
		if ran, err := fresh.Do(t.Context(), nothing); ran || !errors.Is(err, dibs.ErrReleased) {
			t.Errorf("under a lease that was released: %t, %v", ran, err)
		}
	}},
	{"UnderAnotherLockNothingIsKnown", func(t *testing.T, s *Stage) {
		key := fresh()
		c := newRig(t, s, dibs.Settings{}).client
		func() {
			defer func() { _ = recover() }()
			_, _ = c.Once(key, time.Hour).Do(t.Context(), func(context.Context) error { panic("oh") })
		}()
		lease, err := c.Mutex(fresh()).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ran, err := c.Once(key, time.Hour).With(dibs.OnceOptions{Lease: lease}).Do(t.Context(), nothing); ran || !errors.Is(err, dibs.ErrRejected) {
			t.Errorf("under another lock: %t, %v; want it rejected", ran, err)
		}
	}},
	{"ADoneRunThatCantBeWritten", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		r.left = true
		ran, err := r.client.Once(fresh(), time.Hour).Do(t.Context(), func(context.Context) error {
			r.link.On(CutBefore, OpPut)
			return nil
		})
		r.link.Pick(nil)
		if !ran || !errors.Is(err, dibs.ErrUnknown) {
			t.Errorf("do: %t, %v; want ErrUnknown", ran, err)
		}
	}},
	{"BadOnesAreRejected", func(t *testing.T, s *Stage) {
		c := newRig(t, s, dibs.Settings{}).client
		shared, err := c.Reader(fresh()).TryLock(t.Context())
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		bad := map[string]*dibs.Once{
			"no key":         c.Once("", time.Hour),
			"not kept":       c.Once("key", 0),
			"a long request": c.Once("key", time.Hour).With(dibs.OnceOptions{Request: string(make([]byte, dibs.MaxRequest+1))}),
			"no policy":      c.Once("key", time.Hour).With(dibs.OnceOptions{Interrupted: "perhaps"}),
		}
		if shared != nil {
			bad["a shared lease"] = c.Once("key", time.Hour).With(dibs.OnceOptions{Lease: shared})
		}
		for what, o := range bad {
			if ran, err := o.Do(t.Context(), nothing); ran || !errors.Is(err, dibs.ErrRejected) {
				t.Errorf("%s: %t, %v; want it rejected", what, ran, err)
			}
		}
	}},
})
