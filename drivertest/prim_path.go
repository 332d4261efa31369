package drivertest

import (
	"errors"
	"testing"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var pathLaws = []law{
	{number: 52, name: "PathsExcludeAncestors", test: l52.run},
}

var l52 = parts{
	{"WhoExcludesWhom", func(t *testing.T, s *Stage) {
		sharing(t, s)
		a, b := newRig(t, s, dibs.Settings{}), newRig(t, s, dibs.Settings{})
		for _, row := range []struct {
			one, other string
			exclude    bool
		}{
			{"a", "a", true},
			{"a", "a/b/c", true},
			{"a/b", "a/b/c", true},
			{"a/b/c", "a/b/c", true},
			{"a/b/c/d", "a/b", true},
			{"a/b/c", "a/b/d", false},
			{"a/b", "a/bc", false},
			{"a", "ab", false},
			{"a/b/c", "b/c", false},
			{"a/b/c", "a/x/c", false},
		} {
			root := fresh() + " " // a sibling of every other part's
			for _, pair := range [][2]string{{row.one, row.other}, {row.other, row.one}} {
				l, err := a.client.Path(root + pair[0]).TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(l.Fences()) == 0 || l.Fences()[root+pair[0]] == 0 && s.Facts.Fencing != driver.NoFencing {
					t.Errorf("%q: fences %v", pair[0], l.Fences())
				}
				beside, err := b.client.Path(root + pair[1]).TryLock(t.Context())
				switch {
				case row.exclude && !errors.Is(err, dibs.ErrHeld):
					t.Errorf("%q beside %q: %v, want ErrHeld", pair[1], pair[0], err)
				case !row.exclude && err != nil:
					t.Errorf("%q beside %q: %v", pair[1], pair[0], err)
				}
				if beside != nil {
					if err := beside.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	}},
	{"TheParentWaitsForItsChildren", func(t *testing.T, s *Stage) {
		sharing(t, s)
		r, root := newRig(t, s, dibs.Settings{}), fresh()
		x, err := r.client.Path(root + "/x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		y, err := r.client.Path(root + "/y").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { // ends with the lock
			l, err := r.client.Path(root).Lock(t.Context())
			if err == nil {
				err = l.Release(t.Context())
			}
			got <- err
		}()
		for _, l := range []*dibs.Lease{x, y} {
			s.Settle()
			select {
			case err := <-got:
				t.Fatalf("granted beside a child: %v", err)
			default:
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	}},
	{"WhatIsNoPath", func(t *testing.T, s *Stage) {
		sharing(t, s)
		r := newRig(t, s, dibs.Settings{})
		for _, name := range []string{"", "/", "/a", "a/", "a//b", "a/\n"} {
			if _, err := r.client.Path(name).TryLock(t.Context()); !errors.Is(err, dibs.ErrRejected) {
				t.Errorf("%q: %v, want it rejected", name, err)
			}
		}
		if n := len(r.calls.Calls(OpAcquire)) + len(r.calls.Calls(OpAcquireAll)); n != 0 {
			t.Errorf("%d calls were made", n)
		}
	}},
	{"RefusedWithoutSharing", func(t *testing.T, s *Stage) {
		if s.has(driver.Shared) {
			s.skip(t, "the store shares")
		}
		r := newRig(t, s, dibs.Settings{})
		for _, name := range []string{"a", "a/b"} {
			_, err := r.client.Path(name).Lock(t.Context())
			isUnsupported(t, name, err)
		}
		if n := len(r.calls.Calls(OpAcquire)) + len(r.calls.Calls(OpAcquireAll)); n != 0 {
			t.Errorf("%d calls were made", n)
		}
	}},
}

// sharing skips the part on a store that has no shared claims.
func sharing(t testing.TB, s *Stage) {
	t.Helper()
	if !s.has(driver.Shared) {
		s.skip(t, "the store does not share")
	}
}
