package drivertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
)

var closeLaws = []law{
	{number: 43, name: "CloseLeavesNothing", test: closeLeavesNothing},
	{number: 43, name: "CloseWaitsForWhatIsLate", test: closeWaitsForLate},
	{number: 43, name: "CloseIsBounded", test: closeIsBounded},
}

// closeLeavesNothing closes a client that holds, waits and owes. That no
// goroutine is left is what the bubble sees to: it panics at its end otherwise.
func closeLeavesNothing(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	held := r.tryLock(t)
	ctx := held.Context()
	c, _ := MustAcquire(t, r.other, Mutex("waited for", r.TTL(20*r.ttl)))
	ended := make(chan error, 1)
	go func() { // ends with the Lock
		_, err := r.client.Mutex("waited for").Lock(t.Context())
		ended <- err
	}()
	r.answered(t, OpAcquire, 2)
	r.Settle()
	time.Sleep(r.ttl / 10)

	bound, cancel := context.WithTimeout(t.Context(), 3*r.ttl)
	defer cancel()
	if err := r.client.Close(bound); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-ended; !errors.Is(err, dibs.ErrClosed) {
		t.Errorf("Lock of a closed client: %v, want ErrClosed", err)
	}
	if !done(ctx, time.Second) {
		t.Error("the lease's context did not end")
	}
	isLost(t, held, dibs.ClientClosed)
	if _, err := r.client.Mutex(lockName).TryLock(t.Context()); !errors.Is(err, dibs.ErrClosed) {
		t.Errorf("TryLock of a closed client: %v, want ErrClosed", err)
	}
	for _, h := range r.holders(t, "") {
		if h.Token != c.Token {
			t.Errorf("left after Close: %+v", h)
		}
	}
	r.isFree(t, lockName)
	MustRelease(t, r.other, c)
	r.isFree(t, "waited for")
	if _, err := r.inner.Acquire(t.Context(), Mutex(lockName, r.ttl)); !errors.Is(err, dibs.ErrClosed) {
		t.Errorf("the store is not closed: %v", err)
	}
}

func closeWaitsForLate(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.link.On(Late, OpAcquire)
	if _, err := r.client.Mutex(lockName).TryLock(t.Context()); !errors.Is(err, dibs.ErrUnknown) {
		t.Fatalf("TryLock: %v, want ErrUnknown", err)
	}
	r.link.Pick(nil)
	after(t, r.ttl/2, r.link.Land)
	bound, cancel := context.WithTimeout(t.Context(), 3*r.ttl)
	defer cancel()
	if err := r.client.Close(bound); err != nil {
		t.Errorf("Close: %v", err)
	}
	time.Sleep(time.Until(r.first(t, OpAcquire).Sent.Add(r.ttl)))
	r.isFree(t, lockName)
}

func closeIsBounded(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{TTL: s.TTL(time.Minute)})
	r.tryLock(t)
	r.link.Set(CutBefore)
	r.left = true
	bound, cancel := context.WithTimeout(t.Context(), r.ttl/4)
	defer cancel()
	start := time.Now()
	err := r.client.Close(bound)
	if took := time.Since(start); s.Bubble && took > r.ttl/2 {
		t.Errorf("Close took %v, its ctx %v", took, r.ttl/4)
	}
	if err == nil || !strings.Contains(err.Error(), lockName) {
		t.Errorf("Close: %v, want an error that names %q", err, lockName)
	}
	if again := r.client.Close(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("Close again: %v, want %v", again, err)
	}
}
