package calls_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/internal/calls"
)

// ends runs what happens to a call, and tells when and why it has ended.
func ends(t *testing.T, c *calls.Call, what func()) (after time.Duration, err error) {
	t.Helper()
	began := time.Now()
	if what != nil {
		go what()
	}
	<-c.Done()
	if c.Err() == nil {
		t.Fatal("done, and no error")
	}
	return time.Since(began), c.Err()
}

func TestACallEndsAtItsDeadline(t *testing.T) {
	for _, timeout := range []time.Duration{time.Millisecond, 15 * time.Millisecond, 17 * time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c := calls.New().Begin(t.Context(), timeout)
			defer c.End()
			if d, ok := c.Deadline(); !ok || !d.Equal(time.Now().Add(timeout)) {
				t.Errorf("deadline %v, %v", d, ok)
			}
			if after, err := ends(t, c, nil); after != timeout || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: ended after %v: %v", timeout, after, err)
			}
		})
	}
}

func TestACallEndsWithItsParent(t *testing.T) {
	mine := errors.New("mine")
	for _, begun := range []time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithCancelCause(t.Context())
			c := calls.New().Begin(parent, time.Minute)
			defer c.End()
			time.Sleep(begun)
			after, err := ends(t, c, func() { cancel(mine) })
			if slack := 8 * time.Millisecond; begun >= slack && after != 0 || after > slack {
				t.Errorf("%v under way: ended %v after its parent", begun, after)
			}
			if err != context.Canceled || context.Cause(c) != mine {
				t.Errorf("%v under way: %v, because of %v", begun, err, context.Cause(c))
			}
		})
	}
}

func TestAnEndThatNobodyWasToldIsSeen(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	c := calls.New().Begin(parent, time.Minute)
	defer c.End()
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	cancel()
	if c.Err() != context.Canceled {
		t.Errorf("got %v", c.Err())
	}
	<-c.Done()
}

func TestWhatIsDerivedEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := calls.New()
		c := m.Begin(t.Context(), time.Minute)
		child, cancel := context.WithCancel(c)
		defer cancel()
		kept := 0
		stop := context.AfterFunc(c, func() { kept++ })
		if !stop() || stop() {
			t.Error("stop does not tell whether it stopped")
		}
		c.End()
		<-child.Done()
		synctest.Wait()
		if kept != 0 {
			t.Error("called after stop")
		}
		next := m.Begin(t.Context(), time.Minute)
		defer next.End()
		if next == c {
			t.Error("a context that somebody may look at is used again")
		}
	})
}

// A context is used again when its call has ended with nothing to tell, and only
// then. (The race detector has a pool lose some of what is put there.)
func TestContextsAreUsedAgain(t *testing.T) {
	m := calls.New()
	first, seen := m.Begin(t.Context(), time.Minute), map[*calls.Call]int{}
	for range 100 {
		c := m.Begin(t.Context(), time.Minute)
		if c == first {
			t.Fatal("two calls share a context")
		}
		seen[c]++
		c.End()
	}
	if len(seen) > 80 {
		t.Errorf("%d contexts for 100 calls one after the other", len(seen))
	}
	first.End()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	over := m.Begin(ended, time.Minute)
	if over.Err() == nil {
		t.Error("a call goes on without its parent")
	}
	over.End()
	for range 100 {
		c := m.Begin(t.Context(), time.Minute)
		if c == over || c.Err() != nil {
			t.Fatal("a context that has ended is used again")
		}
		c.End()
	}
}

// What is looked at are calls under way, and contexts that were used lately: of a
// crowd that has left, nothing stays when others have called for some moments.
func TestACrowdLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := calls.New()
		var all []*calls.Call
		for range 1000 {
			all = append(all, m.Begin(t.Context(), time.Minute))
		}
		if n := calls.Looked(m); n != 1000 {
			t.Errorf("%d of 1000 calls are looked at", n)
		}
		for _, c := range all[1:] {
			c.End()
		}
		for range 10 {
			c := m.Begin(t.Context(), time.Minute)
			time.Sleep(3 * time.Millisecond)
			c.End()
		}
		if n := calls.Looked(m); n > 10 {
			t.Errorf("%d are looked at, and there was one call at a time", n)
		}
		all[0].End()
		c := m.Begin(t.Context(), time.Second)
		if after, err := ends(t, c, nil); after != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call after all that ended after %v: %v", after, err)
		}
	})
}

func TestManyCalls(t *testing.T) {
	m := calls.New()
	for i := range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for n := range 2000 {
				timeout := time.Minute
				if n%100 == i {
					timeout = 20 * time.Millisecond
				}
				c := m.Begin(t.Context(), timeout)
				if timeout < time.Minute {
					<-c.Done()
				}
				if ended := c.Err() != nil; ended != (timeout < time.Minute) {
					t.Fatalf("timeout %v: %v", timeout, c.Err())
				}
				c.End()
			}
		})
	}
}

// BenchmarkCall has what a call's context costs beside one from WithTimeout.
func BenchmarkCall(b *testing.B) {
	parent, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run("timeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(parent, time.Second)
			ctx.Done()
			cancel()
		}
	})
	b.Run("call", func(b *testing.B) {
		b.ReportAllocs()
		m := calls.New()
		for b.Loop() {
			c := m.Begin(parent, time.Second)
			c.Done()
			c.End()
		}
	})
}
