package memlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
)

func open(t *testing.T, url string) driver.Store {
	t.Helper()
	s, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, first, second string
		shared              bool
	}{
		{"private", "mem://", "mem://", false},
		{"shared", "mem://open-test", "mem://open-test", true},
		{"shared, with a journal", "mem://open-test-2", "mem://open-test-2?journal=on", true},
		{"two names", "mem://open-test-3", "mem://open-test-4", false},
		{"private and shared", "mem://", "mem://open-test-5", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			a, b := open(t, row.first), open(t, row.second)
			drivertest.MustAcquire(t, a, drivertest.Mutex("x", time.Minute))
			_, err := b.Acquire(t.Context(), drivertest.Mutex("x", time.Minute))
			if shared := errors.Is(err, driver.ErrHeld); shared != row.shared || err != nil && !shared {
				t.Fatalf("%s and %s share a memory: want %v, got %v", row.first, row.second, row.shared, err)
			}
		})
	}
}

func TestOpenedMemoryOutlivesItsClients(t *testing.T) {
	t.Parallel()
	a, err := driver.Open(t.Context(), "mem://outlives")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := drivertest.MustAcquire(t, a, drivertest.Mutex("x", time.Minute))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b := open(t, "mem://outlives")
	if p := drivertest.RenewOne(t.Context(), b, m); p.Err != nil {
		t.Fatalf("every client was closed, and the claim is gone: %v", p.Err)
	}
}

func TestOpenJournal(t *testing.T) {
	t.Parallel()
	for url, on := range map[string]bool{
		"mem://": false, "mem://?journal=off": false, "mem://?journal=on": true,
		"mem://open-journal": false, "mem://open-journal-on?journal=on": true,
	} {
		s := open(t, url)
		drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute))
		n := 0
		for _, err := range s.(driver.Journal).Events(t.Context(), "", 0) {
			if errors.Is(err, errors.ErrUnsupported) == on {
				t.Fatalf("%s: %v", url, err)
			}
			n++
		}
		if n != 1 {
			t.Fatalf("%s: %d answers", url, n)
		}
	}
}

func TestOpenRejects(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"mem://?jornal=on", "mem://x?journal=yes", "mem://x?journal=on&journal=on", "mem://x?ttl=5s", "mem://x/y", "mem:x",
		"mem://user:secret@x", "mem://x#y", "mem://x?%zz=1", "mem:///x",
	} {
		s, err := driver.Open(t.Context(), url)
		if !errors.Is(err, driver.ErrRejected) || s != nil {
			t.Errorf("%s: %v, %v", url, s, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := driver.Open(ctx, "mem://"); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended ctx: %v", err)
	}
}
