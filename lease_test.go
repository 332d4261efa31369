package dibs_test

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

func lock(t *testing.T, l *dibs.Locker) *dibs.Lease {
	t.Helper()
	lease, err := l.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestMaxHoldEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &dibs.Options{Settings: dibs.Settings{TTL: 3 * time.Second, MaxHold: 10 * time.Second}})
		lease := lock(t, c.Mutex("a"))
		began := time.Now()
		<-lease.Context().Done()
		var lost *dibs.LostError
		if err := context.Cause(lease.Context()); !errors.As(err, &lost) || lost.Reason != dibs.OverMaxHold {
			t.Fatalf("cause %v", err)
		}
		if held := time.Since(began); held != 10*time.Second || lost.Held != held {
			t.Errorf("held for %v (%v), want 10s", held, lost.Held)
		}
		// What is in flight may drain: the name frees by its TTL, or by Release.
		if _, err := c.Mutex("a").TryLock(t.Context()); !errors.Is(err, dibs.ErrHeld) {
			t.Errorf("free at the very moment of the loss: %v", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("release: %v", err)
		}
		if err := lock(t, c.Mutex("a")).Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestBindEndsWithEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, nil)
		lease := lock(t, c.Mutex("a"))
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		one, stop := lease.Bind(parent)
		other, stopOther := lease.Bind(t.Context())
		defer stopOther()
		stopped, stopThird := lease.Bind(t.Context())
		stopThird()
		if one.Value(key{}) != "v" {
			t.Error("the parent's values are gone")
		}
		cancel()
		if one.Err() == nil || other.Err() != nil || lease.Check() != nil {
			t.Errorf("parent ended: %v, other %v, lease %v", one.Err(), other.Err(), lease.Check())
		}
		stop()
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := context.Cause(other); !errors.Is(err, dibs.ErrReleased) {
			t.Errorf("cause %v", err)
		}
		if err := context.Cause(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("a stopped one has the cause %v", err)
		}
		late, stopLate := lease.Bind(t.Context())
		defer stopLate()
		if !errors.Is(context.Cause(late), dibs.ErrReleased) || !errors.Is(context.Cause(lease.Context()), dibs.ErrReleased) {
			t.Error("made after the end, and alive")
		}
	})
}

type key struct{}

func TestForgoFreesTheNameAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &dibs.Options{Settings: dibs.Settings{Keep: time.Hour}})
		if err := lock(t, c.Mutex("a")).Forgo(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lock(t, c.Mutex("a")).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("a").TryLock(t.Context()); !errors.Is(err, dibs.ErrHeld) {
			t.Errorf("a release within Keep freed the name: %v", err)
		}
	})
}

func TestReleaseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, nil)
		lease := lock(t, c.Mutex("a"))
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		successor := lock(t, c.Mutex("a"))
		if err := lease.Release(t.Context()); !errors.Is(err, dibs.ErrReleased) {
			t.Errorf("again: %v", err)
		}
		if err := successor.Validate(t.Context()); err != nil {
			t.Errorf("the successor: %v", err)
		}
		if err := lease.Check(); !errors.Is(err, dibs.ErrReleased) || lease.Remaining() != 0 {
			t.Errorf("after its release: %v, %v remaining", err, lease.Remaining())
		}
		if err := lease.Validate(t.Context()); !errors.Is(err, dibs.ErrReleased) {
			t.Errorf("validate: %v", err)
		}
	})
}

func TestValidateHearsOfARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []dibs.Reason
		c := open(t, &dibs.Options{Hooks: dibs.Hooks{Lost: func(_ *dibs.Lease, err *dibs.LostError) { told = append(told, err.Reason) }}})
		lease := lock(t, c.Mutex("a"))
		if err := lease.Validate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Revoke(t.Context(), dibs.Revocation{Name: "a", Token: lease.Token() + 1}); !errors.Is(err, dibs.ErrNotHeld) {
			t.Errorf("revoking another token: %v", err)
		}
		if err := c.Revoke(t.Context(), dibs.Revocation{Name: "a", Token: lease.Token()}); err != nil {
			t.Fatal(err)
		}
		err := lease.Validate(t.Context())
		var lost *dibs.LostError
		if !errors.As(err, &lost) || lost.Reason != dibs.RevokedAway || !errors.Is(err, dibs.ErrRevoked) {
			t.Errorf("validate: %v", err)
		}
		if _, err := c.Mutex("a").TryLock(t.Context()); !errors.Is(err, dibs.ErrHeld) {
			t.Errorf("free before its holder let go: %v", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("release: %v", err)
		}
		lock(t, c.Mutex("a"))
		synctest.Wait() // the store may have told of it first, on a goroutine of its own
		if len(told) != 1 || told[0] != dibs.RevokedAway {
			t.Errorf("hooks heard %v", told)
		}
	})
}

func TestDoReturnsTheWorksOwnResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &dibs.Options{Settings: dibs.Settings{TTL: 3 * time.Second}})
		boom := errors.New("boom")
		work := c.Mutex("a")

		if err := work.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("fine work: %v", err)
		}
		if err := work.Do(t.Context(), func(context.Context) error { return boom }); err != boom {
			t.Errorf("failed work: %v", err)
		}
		err := work.Do(t.Context(), func(ctx context.Context) error {
			if err := work.TryDo(ctx, func(context.Context) error { t.Error("ran inside itself"); return nil }); !errors.Is(err, dibs.ErrHeld) {
				t.Errorf("inside itself: %v", err)
			}
			time.Sleep(20 * time.Second) // more than six TTLs
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("long work: %v", err)
		}
		err = work.Do(t.Context(), func(ctx context.Context) error {
			for h := range c.Holders(t.Context(), "a") {
				if err := c.Revoke(t.Context(), dibs.Revocation{Name: "a", Token: h.Token, Now: true}); err != nil {
					t.Error(err)
				}
			}
			<-ctx.Done()
			return boom
		})
		if !errors.Is(err, boom) || !errors.Is(err, dibs.ErrLost) {
			t.Errorf("work that lost its lock: %v", err)
		}

		func() {
			defer func() {
				if v := recover(); v != "oops" {
					t.Errorf("recovered %v", v)
				}
			}()
			_ = work.Do(t.Context(), func(context.Context) error { panic("oops") })
		}()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_ = work.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-gone
		lock(t, work) // free after a panic and after Goexit
	})
}

func TestCallerContextBoundsTheWaitOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		lease, err := c.Mutex("a").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if lease.Check() != nil || lease.Context().Err() != nil {
			t.Error("the lease ended with the ctx of its wait")
		}
		if _, err := c.Mutex("b").Lock(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, dibs.ErrHeld) {
			t.Errorf("a ctx that has ended: %v", err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Errorf("release with it: %v", err)
		}
	})
}

// A nil ctx is a mistake, but no reason to keep what was to be given back.
func TestReleaseWithoutACtx(t *testing.T) {
	c := open(t, nil)
	var none context.Context
	if err := lock(t, c.Mutex("a")).Release(none); err != nil {
		t.Error(err)
	}
	if err := lock(t, c.Mutex("a")).Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenOfAStoreThatIsDown(t *testing.T) {
	down := errors.New("connection refused")
	driver.Register("down", func(context.Context, *url.URL) (driver.Store, error) { return nil, down })
	_, err := dibs.Open(t.Context(), "down://user:secret@there", nil)
	var e *dibs.Error
	if !errors.Is(err, dibs.ErrUnknown) || !errors.Is(err, down) || !errors.As(err, &e) || e.Op != "open" || e.Driver != "down" {
		t.Errorf("%v, want an ErrUnknown of opening", err)
	}
	if _, err := dibs.Open(t.Context(), "down", nil); !errors.Is(err, dibs.ErrRejected) || errors.Is(err, dibs.ErrUnknown) {
		t.Errorf("%v, want an ErrRejected", err)
	}
}
