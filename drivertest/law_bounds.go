package drivertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var boundsLaws = []law{
	{number: 7, name: "UnsupportedModesAreRefused", test: l7.run},
	{number: 8, name: "NamesAreBytes", test: l8.run},
	{number: 9, name: "CallsEndWithTheirContext", test: l9.run},
	{number: 10, name: "TTLIsRoundedUp", test: l10.run},
}

// sample is a claim of mode m.
func sample(m driver.Mode, name string, ttl time.Duration) driver.Claim {
	switch m {
	case driver.Shared:
		return Reader(name, ttl)
	case driver.Counted:
		return Permit(name, 1, 2, ttl)
	default:
		return Mutex(name, ttl)
	}
}

var modes = []driver.Mode{driver.Exclusive, driver.Shared, driver.Counted}

var l7 = parts{
	{"Refused", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		for _, m := range modes {
			if s.has(m) {
				continue
			}
			c := sample(m, fresh(), s.long())
			ask := func(a driver.Store) {
				t.Helper()
				_, err := a.Acquire(t.Context(), c)
				unsupported(t, m, err)
				if batch, ok := a.(driver.Batcher); ok {
					good := Mutex(fresh(), s.long())
					_, err := batch.AcquireAll(t.Context(), []driver.Claim{good, c})
					unsupported(t, m, err)
					free(t, a, good.Name, s.long())
				}
			}
			ask(a)
			free(t, a, c.Name, s.long())
			MustAcquire(t, a, Mutex(c.Name, s.long()))
			ask(a) // and it is not a refusal because of the holder
			if s.Cut != nil {
				// Before any I/O: also if nothing gets through.
				cut, link := s.Cut(t)
				link.Set(BlackHole)
				_, err := cut.Acquire(bounded(t, s.tick()), c)
				unsupported(t, m, err)
				link.Set(Pass)
			}
		}
	}},
	{"SupportedIsNotAnother", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		if s.has(driver.Shared) {
			r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
			MustAcquire(t, b, Reader(r.Name, s.long()))
		}
		if s.has(driver.Counted) {
			p, _ := MustAcquire(t, a, Permit(fresh(), 1, 2, s.long()))
			MustAcquire(t, b, Permit(p.Name, 1, 2, s.long()))
			refused(t, b, Permit(p.Name, 1, 2, s.long()))
		}
		if s.has(driver.Exclusive) {
			m, _ := MustAcquire(t, a, Permit(fresh(), 2, 2, s.long()))
			refused(t, b, Permit(m.Name, 2, 2, s.long()))
		}
	}},
}

func unsupported(t testing.TB, m driver.Mode, err error) {
	t.Helper()
	if !errors.Is(err, errors.ErrUnsupported) || errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNotHeld) {
		t.Fatalf("%v is not supported, and the answer is %v", m, err)
	}
}

// oddNames are names that must never meet.
func oddNames() []string {
	long := strings.Repeat("n", driver.MaxName-1)
	return []string{
		"a", "A", "a ", " a", "\u00e1", "a\u0301", "ａ", "ß", "ss", "SS", "K", "\u212a", "k", "İ", "i̇", "ı", "I",
		"a/b", "a//b", "a/./b", "a/b/", "/", "//", ".", "..", "a\\b", "{a}", "{}", "{a}b", "a{b}", "a:b", "a::b",
		"'", "''", `"`, "`", "a'b", `a"b`, "a''b", "%", "%%", "%41", "%2F", "_", "*", "?", "[a]", "a*", "\\", "\\\\", "\\0", "$1", ":1", "@a", "-- ", ";", "🔒", "1", "01", "1.0", "1e0", "0x1",
		"NULL", "null", "true", "\u00a0", "\u2028", "\ufeff", "\ufffd", "\u200b",
		long + "a", long + "b", long, long[1:],
	}
}

var badNames = map[string]string{
	"empty":            "",
	"too long":         strings.Repeat("n", driver.MaxName+1),
	"long in bytes":    strings.Repeat("é", driver.MaxName/2+1),
	"not UTF-8":        "a\xff",
	"cut UTF-8":        "\xe2\x82",
	"a surrogate":      "\xed\xa0\x80",
	"a NUL":            "a\x00b",
	"a newline":        "a\nb",
	"a DEL":            "a\x7f",
	"a C1 control":     "a\u0085",
	"a tab at the end": "a\t",
}

var l8 = parts{
	{"NeverMeet", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		for _, name := range oddNames() {
			c, err := a.Acquire(t.Context(), Mutex(name, s.long()))
			if err != nil {
				t.Fatalf("%q meets another name: %v (%+v)", name, err, c)
			}
		}
		for _, name := range oddNames() {
			e := refused(t, b, Mutex(name, s.long()))
			if h := e.Holder; h != nil && h.Name != name {
				t.Fatalf("%q is held as %q", name, h.Name)
			}
			listedAs(t, b, name)
		}
	}},
	{"Rejected", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		for what, name := range badNames {
			c := Mutex(name, s.long())
			_, err := a.Acquire(t.Context(), c)
			isRejected(t, what+": acquire", err)
			isRejected(t, what+": release", a.Release(t.Context(), c))
			c.Token = 1
			good, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			ps, err := a.Renew(t.Context(), []driver.Claim{c, good})
			if err != nil || len(ps) != 2 || ps[1].Err != nil {
				t.Fatalf("%s: renewed with a good claim: %+v, %v", what, ps, err)
			}
			isRejected(t, what+": renew", ps[0].Err)
			if p, ok := a.(driver.Watcher); ok {
				_, _, err := p.Watch(t.Context(), c)
				isRejected(t, what+": watch", err)
			}
			if p, ok := a.(driver.Revoker); ok {
				isRejected(t, what+": revoke", p.Revoke(t.Context(), driver.Revocation{Name: name, Token: 1}))
			}
		}
	}},
}

// listedAs checks that exactly the odd names that begin with prefix are listed,
// in the order of their bytes.
func listedAs(t testing.TB, store driver.Store, prefix string) {
	t.Helper()
	hs, ok := list(t, store, prefix)
	if !ok {
		return
	}
	var got, want []string
	for _, h := range hs {
		got = append(got, h.Name)
	}
	for _, name := range oddNames() {
		if strings.HasPrefix(name, prefix) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("listed under %q: %q, want %q", prefix, got, want)
	}
}

// A hurry is a way in which a ctx ends a while later.
type hurry struct {
	what  string
	after func(context.Context, time.Duration) (context.Context, context.CancelFunc)
}

var l9 = parts{
	{"EndedContext", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for op, call := range calls(a, m) {
			start := time.Now()
			if err := call(ctx); err == nil {
				t.Fatalf("%s with an ended ctx: no error", op)
			} else if took := time.Since(start); took > s.tick()/2 {
				t.Fatalf("%s with an ended ctx took %v", op, took)
			}
		}
		proved(t, a, m)
	}},
	{"HungStore", func(t *testing.T, s *Stage) {
		ways := []hurry{
			{"a timeout", context.WithTimeout},
			{"a cancel", func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(d, cancel)
				return ctx, cancel
			}},
		}
		for i, fault := range []Fault{BlackHole, DropReplies} {
			a, link := s.Link(t)
			m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			all := calls(a, m)
			link.Set(fault)
			for op, call := range all {
				some := ways
				if !s.Bubble { // where it costs time, each fault has one of them
					some = ways[i : i+1]
				}
				for _, w := range some {
					ctx, end := w.after(t.Context(), s.tick()/2)
					start := time.Now()
					err := call(ctx)
					took := time.Since(start)
					end()
					isUnknown(t, fmt.Sprintf("%v: %s", fault, op), err)
					if took > s.tick()/2+s.tick() || s.Bubble && took > s.tick()/2 {
						t.Fatalf("%v: %s returned %v after %s", fault, op, took-s.tick()/2, w.what)
					}
				}
			}
			// The client works again.
			link.Set(Pass)
			s.Settle()
			MustAcquire(t, a, Mutex(fresh(), s.long()))
		}
	}},
}

var l10 = parts{
	{"OutOfBounds", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		for _, ttl := range []time.Duration{0, -1, -time.Hour, math.MinInt64, s.Facts.MinTTL - 1, s.Facts.MaxTTL + 1, math.MaxInt64} {
			if ttl > 0 && ttl >= s.Facts.MinTTL && ttl <= s.Facts.MaxTTL {
				continue
			}
			what := fmt.Sprintf("TTL %v", ttl)
			c := Mutex(fresh(), ttl)
			_, err := a.Acquire(t.Context(), c)
			isRejected(t, what, err)
			free(t, b, c.Name, s.long())
			if batch, ok := a.(driver.Batcher); ok {
				_, err := batch.AcquireAll(t.Context(), []driver.Claim{c})
				isRejected(t, what+" in a batch", err)
				free(t, b, c.Name, s.long())
			}
			held, _ := MustAcquire(t, a, Mutex(c.Name, s.long()))
			held.TTL = ttl
			isRejected(t, what+" in a renewal", RenewOne(t.Context(), a, held).Err)
			_, err = a.Acquire(t.Context(), held)
			isRejected(t, what+" in a repeat", err)
			held.TTL = s.long()
			proved(t, a, held)
		}
	}},
	{"Bounds", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		for _, ttl := range []time.Duration{s.Facts.MinTTL, s.Facts.MaxTTL} {
			if _, g := MustAcquire(t, a, Mutex(fresh(), ttl)); g.TTL < ttl {
				t.Fatalf("TTL %v: granted %v", ttl, g.TTL)
			}
		}
	}},
	{"RoundedUp", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		for _, ttl := range []time.Duration{
			s.tick() + 1, s.tick() + s.Facts.Step/2, s.tick() + s.tick()/2 + 1, s.tick() + s.Facts.Step - 1,
		} {
			step := max(s.Facts.Step, 1)
			want := (ttl + step - 1) / step * step // the next step, and no more
			m, g := MustAcquire(t, a, Mutex(fresh(), ttl))
			if g.TTL != want {
				t.Fatalf("TTL %v with steps of %v: granted %v, want %v", ttl, s.Facts.Step, g.TTL, want)
			}
			c := s.clock()
			renewed, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
			if p := proved(t, a, renewed); p.TTL != want {
				t.Fatalf("TTL %v with steps of %v: proved for %v, want %v", ttl, s.Facts.Step, p.TTL, want)
			}
			if s.Facts.Survival != driver.ByTTL {
				continue
			}
			// The granted TTL is what counts.
			c.before(want)
			refused(t, b, Mutex(m.Name, s.long()))
			refused(t, b, Mutex(renewed.Name, s.long()))
			c.after(want)
			free(t, b, m.Name, s.long())
			c = s.clock()
			c.after(0)
			free(t, b, renewed.Name, s.long())
		}
	}},
}
