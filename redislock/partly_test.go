package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// namesKey wants an ErrRejected that names a key.
func namesKey(t *testing.T, err error, key string) {
	t.Helper()
	if isRejected(t, err); !strings.Contains(err.Error(), "the key "+key+" ") {
		t.Errorf("%v does not name the key %s", err, key)
	}
}

// The mark is what it should not be: nobody is granted anything, no name is held
// all the same, and the key stays as it is (law 5).
func TestMarkThatIsNoMark(t *testing.T) {
	t.Parallel()
	r := servers.SharedRedis(t)
	for what, spoil := range map[string]func(mark string) []any{
		"list":        func(mark string) []any { return []any{"RPUSH", mark, "x"} },
		"word":        func(mark string) []any { return []any{"SET", mark, "x"} },
		"long word":   func(mark string) []any { return []any{"SET", mark, "twenty bytes or more"} },
		"fraction":    func(mark string) []any { return []any{"SET", mark, "99999999999999999.5"} },
		"exponent":    func(mark string) []any { return []any{"SET", mark, "1e30"} },
		"no number":   func(mark string) []any { return []any{"SET", mark, "nan"} },
		"the largest": func(mark string) []any { return []any{"SET", mark, "9223372036854775807"} },
		"too large":   func(mark string) []any { return []any{"SET", mark, "18446744073709551617"} },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for _, layout := range []string{"", "&journal=on", "&layout=plain"} {
				params := space() + layout
				mark := strings.TrimPrefix(strings.Split(params, "&")[0], "prefix=") + ":mark"
				s := open(t, r.Addr(), params)
				do(t, r, spoil(mark)...)
				before := do(t, r, "DUMP", mark)
				name := mark[:len(mark)-len(":mark")] + " name" // in the plain layout a key of the server's
				_, err := s.Acquire(t.Context(), drivertest.Mutex(name, time.Hour))
				namesKey(t, err, mark)
				_, err = s.(driver.Batcher).AcquireAll(t.Context(), []driver.Claim{
					drivertest.Mutex(name, time.Hour), drivertest.Mutex(name+"2", time.Hour),
				})
				namesKey(t, err, mark)
				_, err = s.(driver.Records).Put(t.Context(), driver.Record{Key: "record", Retention: time.Hour})
				namesKey(t, err, mark)
				if now := do(t, r, "DUMP", mark); now != before {
					t.Errorf("%s: the key was changed", layout)
				}
				if left := keysOf(t, r, params); len(left) != 1 {
					t.Errorf("%s: left %v", layout, left)
				}
				if n := do(t, r, "EXISTS", name, name+"2"); n != int64(0) {
					t.Errorf("%s: left the plain keys", layout)
				}
			}
		})
	}
}

// The same where one has the name, another wants a place, and a third has one: the
// line stays as it is.
func TestMarkThatIsNoMarkAnyMore(t *testing.T) {
	t.Parallel()
	r := servers.SharedRedis(t)
	for _, spoiled := range []string{"list", "word"} {
		for _, journal := range []string{"", "&journal=on"} {
			t.Run(spoiled+journal, func(t *testing.T) {
				t.Parallel()
				params := space() + journal
				prefix := strings.TrimPrefix(strings.Split(params, "&")[0], "prefix=")
				s := open(t, r.Addr(), params)
				holder, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
				alone, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("alone", time.Hour))
				var waiters []driver.Claim
				for range 2 {
					w := drivertest.Mutex("name", time.Hour)
					w.Patience = time.Hour
					if _, err := s.Acquire(t.Context(), w); !errors.Is(err, driver.ErrHeld) {
						t.Fatal(err)
					}
					waiters = append(waiters, w)
				}
				do(t, r, "DEL", prefix+":mark")
				if spoiled == "list" {
					do(t, r, "RPUSH", prefix+":mark", "x")
				} else {
					do(t, r, "SET", prefix+":mark", "x")
				}
				for _, name := range []string{"name", "alone"} {
					w := drivertest.Mutex(name, time.Hour)
					w.Patience = time.Hour
					_, err := s.Acquire(t.Context(), w)
					namesKey(t, err, prefix+":mark")
				}
				namesKey(t, s.Release(t.Context(), holder), prefix+":mark")
				if p := drivertest.RenewOne(t.Context(), s, holder); p.Err != nil {
					t.Errorf("the holder's renewal: %v", p.Err)
				}
				drivertest.MustRelease(t, s, alone) // which needs no token

				do(t, r, "DEL", prefix+":mark")
				drivertest.MustRelease(t, s, holder)
				for _, w := range waiters { // still in their order
					g, err := s.Acquire(t.Context(), w)
					if err != nil {
						t.Fatal(err)
					}
					w.Token = g.Token
					drivertest.MustRelease(t, s, w)
				}
				if left := keysOf(t, r, params); journal == "" && len(left) != 1 {
					t.Errorf("left %v", left)
				}
			})
		}
	}
}

// A key of the line is what it should not be: whoever needs it is told which, nobody
// is granted, handed or listed anything by half, and no other name suffers.
func TestLineThatIsNoLine(t *testing.T) {
	t.Parallel()
	r := servers.SharedRedis(t)
	for _, suffix := range []string{":l", ":p"} {
		for _, journal := range []string{"", "&journal=on"} {
			t.Run(suffix+journal, func(t *testing.T) {
				t.Parallel()
				params := space() + journal
				prefix := strings.TrimPrefix(strings.Split(params, "&")[0], "prefix=")
				s := open(t, r.Addr(), params)
				holder, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
				other, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("other", time.Hour))
				waiter := drivertest.Mutex("name", time.Hour)
				waiter.Patience = time.Hour
				if _, err := s.Acquire(t.Context(), waiter); !errors.Is(err, driver.ErrHeld) {
					t.Fatal(err)
				}
				broken := prefix + ":{name}" + suffix
				was := do(t, r, "DUMP", broken)
				do(t, r, "SET", broken, "x")
				before := lineOf(t, r, prefix, suffix)

				next := drivertest.Mutex("name", time.Hour)
				next.Patience = time.Hour
				_, err := s.Acquire(t.Context(), next)
				namesKey(t, err, broken)
				_, err = s.(driver.Batcher).AcquireAll(t.Context(), []driver.Claim{
					drivertest.Mutex("free", time.Hour), drivertest.Mutex("name", time.Hour),
				})
				namesKey(t, err, broken)
				proofs, err := s.Renew(t.Context(), []driver.Claim{other, waiter, holder})
				if err != nil || proofs[0].Err != nil || proofs[2].Err != nil {
					t.Errorf("the proofs are %v: %+v", err, proofs)
				}
				namesKey(t, proofs[1].Err, broken)
				namesKey(t, s.Release(t.Context(), holder), broken)
				namesKey(t, s.(driver.Revoker).Revoke(t.Context(), driver.Revocation{Name: "name", Token: holder.Token, Now: true}), broken)
				var listed []string
				for h, err := range s.(driver.Lister).List(t.Context(), "") {
					if err != nil {
						namesKey(t, err, broken)
						listed = append(listed, "and an error")
						continue
					}
					listed = append(listed, h.Name)
				}
				if got := strings.Join(listed, ", "); got != "other, and an error" {
					t.Errorf("listed: %s", got)
				}
				if now := lineOf(t, r, prefix, suffix); now != before {
					t.Errorf("the line was changed: %q, was %q", now, before)
				}

				do(t, r, "RESTORE", broken, 0, was, "REPLACE")
				drivertest.MustRelease(t, s, holder)
				g, err := s.Acquire(t.Context(), waiter)
				if err != nil {
					t.Fatal(err)
				}
				waiter.Token = g.Token
				drivertest.MustRelease(t, s, waiter)
			})
		}
	}
}

// lineOf is what there is in the key of a line beside the broken one.
func lineOf(t *testing.T, r *servers.RedisServer, prefix, broken string) string {
	t.Helper()
	if broken == ":l" {
		return do(t, r, "DUMP", prefix+":{name}:p").(string)
	}
	return do(t, r, "DUMP", prefix+":{name}:l").(string)
}

// A step that a right is missing for in its midst is certain of nothing.
func TestStepThatWasDoneInPart(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	do(t, r, "ACL", "SETUSER", "locker", "on", ">secret", "~*", "&*", "+@all", "-del")
	s := open(t, "locker:secret@"+r.Addr(), "")
	do(t, r, "SET", "dibs:mark", "x")
	_, err := s.Acquire(context.Background(), drivertest.Mutex("name", time.Hour))
	if err == nil || driver.Certain(err) {
		t.Errorf("the acquire that could not be undone: %v", err)
	}
}
