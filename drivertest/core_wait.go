package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibslock/dibs"
)

var waitLaws = []law{
	{number: 41, name: "SilenceIsNotContention", test: silenceIsNotContention},
	{number: 41, name: "SilenceAfterARefusal", test: silenceAfterRefusal},
	{number: 41, name: "ShortSilenceIsWaitedOut", test: shortSilence},
	{number: 41, name: "StoreDownWaits", test: storeDownWaits},
}

// isDown demands that err tells of a store that is down, and of nothing else.
func isDown(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, dibs.ErrUnknown) || errors.Is(err, dibs.ErrHeld) {
		t.Errorf("Lock: %v, want ErrUnknown and not ErrHeld", err)
	}
}

func silenceIsNotContention(t *testing.T, s *Stage) {
	for _, f := range []Fault{CutBefore, BlackHole} {
		r := newRig(t, s, dibs.Settings{})
		r.link.Set(f)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*r.ttl)
		_, err := r.client.Mutex(lockName).Lock(ctx)
		cancel()
		isDown(t, err)
		took := time.Since(start)
		if took < r.ttl || s.Bubble && took > 2*r.ttl {
			t.Errorf("%v: Lock gave up after %v, want one TTL (%v) or a little more", f, took, r.ttl)
		}
	}
}

func silenceAfterRefusal(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	after(t, 2*r.ttl, func() { r.link.Set(CutBefore) })
	ctx, cancel := context.WithTimeout(t.Context(), 15*r.ttl)
	defer cancel()
	start := time.Now()
	_, err := r.client.Mutex(lockName).Lock(ctx)
	isDown(t, err)
	if took := time.Since(start); took < 3*r.ttl-time.Second || s.Bubble && took > 4*r.ttl {
		t.Errorf("Lock gave up after %v, want one TTL (%v) after the store fell silent at %v", took, r.ttl, 2*r.ttl)
	}
}

func shortSilence(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.link.Set(CutBefore)
	after(t, r.ttl/2, func() { r.link.Set(Pass) })
	l, err := r.client.Mutex(lockName).Lock(t.Context())
	if err != nil {
		t.Fatalf("Lock: %v, though the store was down for half a TTL only", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func storeDownWaits(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{StoreDown: dibs.WaitDown})
	r.link.Set(CutBefore)
	ctx, cancel := context.WithTimeout(t.Context(), 3*r.ttl)
	defer cancel()
	start := time.Now()
	_, err := r.client.Mutex(lockName).Lock(ctx)
	var wait *dibs.WaitError
	if !errors.As(err, &wait) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, dibs.ErrHeld) {
		t.Errorf("Lock: %v, want a *WaitError that is the ctx's cause, and not ErrHeld", err)
	}
	if took := time.Since(start); took < 3*r.ttl {
		t.Errorf("Lock gave up after %v, want its ctx's %v", took, 3*r.ttl)
	}

	after(t, 2*r.ttl, func() { r.link.Set(Pass) })
	l, err := r.client.Mutex(lockName).Lock(t.Context())
	if err != nil {
		t.Fatalf("Lock: %v, want to have waited for the store", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}
