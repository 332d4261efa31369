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

// A call that nobody ended is not what the next one gets, and one that was over at
// once is.
func TestContextsAreUsedAgain(t *testing.T) {
	m := calls.New()
	first := m.Begin(t.Context(), time.Minute)
	first.End()
	second := m.Begin(t.Context(), time.Minute)
	if second != first {
		t.Error("a new context for every call")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	third := m.Begin(ended, time.Minute)
	if third == second || third.Err() == nil || second.Err() != nil {
		t.Error("two calls share a context")
	}
	third.End()
	second.End()
	if fourth := m.Begin(t.Context(), time.Minute); fourth.Err() != nil {
		t.Error(fourth.Err())
	}
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
