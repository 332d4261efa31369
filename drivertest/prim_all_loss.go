package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// revokes is a rig whose other client can take claims away, or the part is
// skipped.
func revokes(t testing.TB, s *Stage, set dibs.Settings) *rig {
	t.Helper()
	if s.Facts.Waived(22) != "" || !is[driver.Revoker](s.Open(t)) || !is[driver.Lister](s.Open(t)) {
		s.skip(t, "nothing can be taken away")
	}
	return newRig(t, s, set)
}

// takeAway revokes whatever holds name, at once.
func (r *rig) takeAway(t testing.TB, name string) {
	t.Helper()
	revoked := false
	for _, h := range r.holders(t, name) {
		if h.Name == name && h.Token != 0 {
			revoke(t, r.other, driver.Claim{Name: name, Token: h.Token}, true)
			revoked = true
		}
	}
	if !revoked {
		t.Fatalf("nobody holds %q", name)
	}
}

// l45Losses is what follows when one name of several is taken away.
var l45Losses = parts{
	{"WhileHeld", both(func(t *testing.T, s *Stage) {
		r, names := revokes(t, s, dibs.Settings{}), three()
		l, err := mutexes(r.client, names).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bound, stop := l.Bind(t.Context())
		defer stop()
		r.takeAway(t, names[1])
		if !done(bound, 2*r.ttl+r.Grace()) {
			t.Fatal("the context does not end")
		}
		var lost *dibs.LostError
		if err := context.Cause(bound); !errors.As(err, &lost) || lost.Name != names[1] {
			t.Errorf("cause %v, want the loss of %q", err, names[1])
		}
		if err := l.Check(); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("check: %v", err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("release: %v", err)
		}
		for _, name := range names {
			r.isFree(t, name)
		}
	})},
	{"ByTheTTL", both(func(t *testing.T, s *Stage) {
		r, names := revokes(t, s, dibs.Settings{}), three()
		s.byTTL(t)
		l, err := mutexes(r.client, names).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.takeAway(t, names[0])
		if !done(l.Context(), 2*r.ttl+r.Grace()) {
			t.Fatal("the context does not end")
		}
		time.Sleep(r.ttl + r.Grace())
		for _, name := range names { // though nobody released it
			r.isFree(t, name)
		}
	})},
	{"WhileWaiting", func(t *testing.T, s *Stage) {
		r, names := revokes(t, s, dibs.Settings{}), three()
		MustAcquire(t, r.other, Mutex(names[2], s.long()))
		taken := make(chan struct{})
		after(t, r.ttl/2, func() {
			defer close(taken) // the loss may be told before the answer is
			r.takeAway(t, names[0])
		})
		_, err := mutexes(r.client, names).Lock(bounded(t, 10*r.ttl))
		var lost *dibs.LostError
		var wait *dibs.WaitError
		if !errors.As(err, &lost) || lost.Name != names[0] || errors.As(err, &wait) {
			t.Errorf("Lock: %v, want the loss of %q", err, names[0])
		}
		<-taken
		r.isFree(t, names[0])
		r.isFree(t, names[1])
		r.isHeld(t, names[2]) // it did not wait for that one
	}},
}
