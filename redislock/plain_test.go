package redislock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// other is a client that is not dibs.
type other interface {
	acquire(name string, ttl time.Duration) bool
	extend(name string, ttl time.Duration) bool
	release(name string) bool
}

// byHand does what redis-cli, redsync, bsm's redislock and node-redlock send.
type byHand struct {
	t testing.TB
	r *servers.RedisServer
}

const (
	deleteScript = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	extendScript = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
)

func (h byHand) acquire(name string, ttl time.Duration) bool {
	return do(h.t, h.r, "SET", name, "by hand", "NX", "PX", ttl.Milliseconds()) == "OK"
}

func (h byHand) extend(name string, ttl time.Duration) bool {
	return do(h.t, h.r, "EVAL", extendScript, 1, name, "by hand", ttl.Milliseconds()) == int64(1)
}

func (h byHand) release(name string) bool {
	return do(h.t, h.r, "EVAL", deleteScript, 1, name, "by hand") == int64(1)
}

// python is redis-py's Lock, in a process of its own.
type python struct {
	t   testing.TB
	in  func(string)
	out *bufio.Scanner
}

func newPython(t testing.TB, r *servers.RedisServer) other {
	const bin = "/usr/bin/python3" // the one that Debian's packages are for
	if err := exec.Command(bin, "-c", "import redis").Run(); err != nil {
		t.Fatal("redis-py is not installed: apt-get install -y python3-redis")
	}
	cmd := exec.Command(bin, "testdata/lock.py", strconv.Itoa(r.Port()))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return &python{t, func(line string) { fmt.Fprintln(in, line) }, bufio.NewScanner(out)}
}

func (p *python) ask(format string, args ...any) bool {
	p.in(fmt.Sprintf(format, args...))
	if !p.out.Scan() {
		p.t.Fatalf("python ended: %v", p.out.Err())
	}
	return p.out.Text() == "ok"
}

func (p *python) acquire(name string, ttl time.Duration) bool {
	return p.ask("acquire %s %f", name, ttl.Seconds())
}

func (p *python) extend(name string, ttl time.Duration) bool {
	return p.ask("extend %s %f", name, ttl.Seconds())
}

func (p *python) release(name string) bool { return p.ask("release %s", name) }

func TestOtherProgramsExcludeUsAndWeThem(t *testing.T) {
	for what, start := range map[string]func(t testing.TB, r *servers.RedisServer) other{
		"by hand":  func(t testing.TB, r *servers.RedisServer) other { return byHand{t, r} },
		"redis-py": newPython,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := servers.Redis(t)
			o, s := start(t, r), open(t, r.Addr(), "layout=plain")
			const name = "orders/42"
			ours := func() (driver.Claim, error) {
				m := drivertest.Mutex(name, 2*time.Second)
				g, err := s.Acquire(t.Context(), m)
				m.Token = g.Token
				return m, err
			}
			refusedOurs := func(what string) *driver.HeldError {
				t.Helper()
				var held *driver.HeldError
				if _, err := ours(); !errors.As(err, &held) {
					t.Fatalf("%s: %v, want a refusal", what, err)
				}
				return held
			}

			if !o.acquire(name, time.Minute) {
				t.Fatal("the other can't lock a free name")
			}
			held := refusedOurs("held by the other")
			if held.RetryAfter <= 50*time.Second || held.RetryAfter > time.Minute || held.Holder == nil {
				t.Errorf("refused with %+v", held)
			}
			if !o.extend(name, 2*time.Minute) {
				t.Error("the other can't extend its own lock")
			}
			if held := refusedOurs("extended by the other"); held.RetryAfter <= time.Minute {
				t.Errorf("refused with %+v", held)
			}
			if !o.release(name) {
				t.Error("the other can't release its own lock")
			}

			m, err := ours()
			if err != nil {
				t.Fatalf("the other has released it: %v", err)
			}
			if o.acquire(name, time.Minute) || o.extend(name, time.Minute) || o.release(name) {
				t.Error("the other got at our lock")
			}
			if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
				t.Errorf("renew: %v", p.Err)
			}
			drivertest.MustRelease(t, s, m)
			if !o.acquire(name, time.Second) {
				t.Fatal("we have released it, and the other can't lock it")
			}

			// By expiry, both ways.
			refusedOurs("held by the other for a second")
			var next driver.Claim
			soon(t, "the other's lock expires", func() bool { next, err = ours(); return err == nil })
			if next.Token <= m.Token {
				t.Errorf("token %d after %d", next.Token, m.Token)
			}
			soon(t, "our lock expires", func() bool { return o.acquire(name, time.Minute) })
			var not *driver.NotHeldError
			if p := drivertest.RenewOne(t.Context(), s, next); !errors.As(p.Err, &not) {
				t.Errorf("renew of a lock that is another's by now: %v", p.Err)
			}
			if err := s.Release(t.Context(), next); !errors.As(err, &not) {
				t.Errorf("release of a lock that is another's by now: %v", err)
			}
			refusedOurs("the other still has it")
		})
	}
}

// A lock that another program breaks is lost, and is no death.
func TestBrokenByAnother(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "layout=plain")
	breaks := [][]any{{"DEL", "name"}}
	for range 200 { // some are on the very point of ending when we look
		breaks = append(breaks, []any{"SET", "name", "mine now", "PX", "1"})
	}
	for _, breaks := range breaks {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
		do(t, r, breaks...)
		if p := drivertest.RenewOne(t.Context(), s, m); !errors.Is(p.Err, driver.ErrNotHeld) {
			t.Errorf("%q: renew: %v", breaks, p.Err)
		}
		var g driver.Grant
		soon(t, "the name is free", func() (ok bool) {
			n := drivertest.Mutex("name", time.Minute)
			var err error
			if g, err = s.Acquire(t.Context(), n); err == nil {
				drivertest.MustRelease(t, s, n)
			}
			return err == nil
		})
		if g.TookOver || g.Token <= m.Token {
			t.Errorf("%q: then %+v after token %d", breaks, g, m.Token)
		}
	}
}

// What will not end by itself, or is no lock at all, is reported and not waited
// for; a lock that another releases is had within a poll.
func TestWaitingForAnother(t *testing.T) {
	r := servers.Redis(t)
	client, err := dibs.Open(t.Context(), "redis://"+r.Addr()+"?layout=plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	for why, set := range map[string][]any{
		"time to live":      {"SET", "a", "for ever"},
		"another program u": {"HSET", "b", "x", "y"},
	} {
		do(t, r, set...)
		_, err := client.Mutex(set[1].(string)).Lock(t.Context())
		isRejected(t, err)
		if !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", set, err)
		}
	}

	do(t, r, "SET", "c", "for a while", "PX", "600000")
	time.AfterFunc(200*time.Millisecond, func() { r.Do("DEL", "c") })
	l, err := client.Mutex("c").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := do(t, r, "GET", "c"); v == nil || v == "for a while" {
		t.Errorf("locked, and the key has %v", v)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if v := do(t, r, "GET", "c"); v != nil {
		t.Errorf("released, and the key has %v", v)
	}
}
