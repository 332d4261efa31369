package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// A jam has the calls of all lanes under way and held up: what is asked for
// meanwhile waits, and goes together.
type jam struct {
	t    *testing.T
	s    driver.Store
	sent <-chan int
	let  chan struct{}
	all  sync.WaitGroup
}

func newJam(t *testing.T, s driver.Store) *jam {
	t.Helper()
	return newJamOf(t, s, func(name string) error {
		_, err := s.Acquire(t.Context(), drivertest.Mutex(name, time.Minute))
		return err
	})
}

// newJamOf is newJam of calls of f, each with a name of its own.
func newJamOf(t *testing.T, s driver.Store, f func(name string) error) *jam {
	t.Helper()
	j := &jam{t: t, s: s}
	j.sent, j.let = redislock.Hold(s)
	for i := range redislock.Lanes {
		j.all.Go(func() { // ends soon after end
			if err := f(fmt.Sprint("ours/lane", i)); err != nil {
				t.Errorf("lane %d: %v", i, err)
			}
		})
		if n := <-j.sent; n != 1 {
			t.Errorf("call %d is about %d claims, and nobody else was there", i, n)
		}
	}
	return j
}

// ask begins f, which asks once, and returns when it waits.
func (j *jam) ask(f func()) {
	j.t.Helper()
	n := redislock.InLine(j.s)
	j.all.Go(f) // ends soon after end
	soon(j.t, "it waits", func() bool { return redislock.InLine(j.s) == n+1 })
}

// end lets all go, waits for them, and tells about how many claims the largest
// call was.
func (j *jam) end() (most int) {
	close(j.let)
	j.all.Wait()
	for len(j.sent) > 0 {
		most = max(most, <-j.sent)
	}
	return most
}

// Each claim of a call has an answer of its own, whatever becomes of the others,
// also if they are on the same name.
func TestClaimsOfOneCallHaveTheirOwnAnswers(t *testing.T) {
	for _, params := range []string{"", "journal=on", "layout=plain"} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			r := servers.Redis(t)
			s := open(t, r.Addr(), params)
			drivertest.MustAcquire(t, s, drivertest.Mutex("held", time.Minute))
			for _, key := range redislock.Keys("odd", params == "layout=plain") {
				do(t, r, "RPUSH", key, "not a lock")
			}
			j := newJam(t, s)
			asked := []string{"free1", "odd", "held", "free2", "free2", "odd", "free2", "free3"}
			errs := make([]error, len(asked))
			for i, name := range asked {
				j.ask(func() {
					c := drivertest.Mutex(name, time.Minute)
					g, err := s.Acquire(t.Context(), c)
					if err == nil {
						c.Token = g.Token
						err = drivertest.RenewOne(t.Context(), s, c).Err
					}
					errs[i] = err
				})
			}
			if most := j.end(); most != len(asked) {
				t.Errorf("they were not asked for in one call: the largest had %d", most)
			}
			for i, want := range []error{nil, driver.ErrRejected, driver.ErrHeld, nil, driver.ErrHeld, driver.ErrRejected, driver.ErrHeld, nil} {
				if !errors.Is(errs[i], want) {
					t.Errorf("%d: %s: %v, not %v", i, asked[i], errs[i], want)
				}
			}
		})
	}
}

// Each release of a call has an answer of its own, whatever is at the name, and who
// waits there is handed it once; also if the user has no right to MGET, and each goes
// by itself.
func TestReleasesOfOneCallHaveTheirOwnAnswers(t *testing.T) {
	for _, right := range []string{"+mget", "-mget"} {
		t.Run(right, func(t *testing.T) {
			r := servers.Redis(t)
			do(t, r, "ACL", "SETUSER", "default", right)
			releasesOfOneCall(t, r)
		})
	}
}

func releasesOfOneCall(t *testing.T, r *servers.RedisServer) {
	s, other := open(t, r.Addr(), ""), open(t, r.Addr(), "")
	take := func(s driver.Store, name string) driver.Claim {
		c, _ := drivertest.MustAcquire(t, s, drivertest.Mutex(name, time.Minute))
		return c
	}
	var last driver.Claim // in line for "crowded"
	free, twice, crowded := take(s, "free"), take(s, "twice"), take(s, "crowded")
	for range 2 {
		last = drivertest.Mutex("crowded", time.Minute)
		last.Patience = time.Minute
		if _, err := other.Acquire(t.Context(), last); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
	}
	for _, key := range redislock.Keys("odd", false) {
		do(t, r, "RPUSH", key, "not a lock")
	}
	kept := drivertest.Mutex("kept", time.Minute)
	kept.Keep = time.Hour
	kept, _ = drivertest.MustAcquire(t, s, kept)
	odd, never, theirs := drivertest.Mutex("odd", time.Minute), drivertest.Mutex("never", time.Minute), take(other, "theirs")
	impostor := drivertest.Mutex("theirs", time.Minute)
	impostor.Token = theirs.Token

	j := newJamOf(t, s, func(name string) error {
		err := s.Release(t.Context(), drivertest.Mutex(name, time.Minute))
		if errors.Is(err, driver.ErrNotHeld) {
			return nil
		}
		return fmt.Errorf("nobody held it: %v", err)
	})
	asked := []driver.Claim{free, twice, crowded, twice, odd, crowded, never, impostor, kept, crowded}
	want := []error{nil, nil, nil, driver.ErrNotHeld, driver.ErrRejected, driver.ErrNotHeld, driver.ErrNotHeld, driver.ErrNotHeld, nil, driver.ErrNotHeld}
	errs := make([]error, len(asked))
	for i, c := range asked {
		j.ask(func() { errs[i] = s.Release(t.Context(), c) })
	}
	if most := j.end(); most != len(asked) {
		t.Errorf("they were not given back in one call: the largest had %d", most)
	}
	for i, c := range asked {
		if !errors.Is(errs[i], want[i]) {
			t.Errorf("%d: %s: %v, not %v", i, c.Name, errs[i], want[i])
		}
	}
	for name, n := range map[string]int{"free": 0, "twice": 0, "crowded": 2, "theirs": 1, "kept": 1} {
		if all := listed(t, s, name); len(all) != n {
			t.Errorf("%s: %+v", name, all)
		}
	}
	if all := listed(t, s, "crowded"); len(all) == 2 && (all[0].State != driver.Handed || all[1].State != driver.Waiting) {
		t.Errorf("crowded: %+v", all)
	}
}

// Grants of one call have tokens of their own, which grow, whether the clock is
// ahead of the mark or behind it, and are listed with them.
func TestGrantsOfOneCallHaveDistinctTokens(t *testing.T) {
	for _, mark := range []string{"", "1", "7000000000999990"} {
		r := servers.Redis(t)
		s := open(t, r.Addr(), "")
		if mark != "" {
			do(t, r, "SET", "dibs:mark", mark)
		}
		tokens := make([]uint64, redislock.MaxInBatch)
		j := newJam(t, s)
		for i := range tokens {
			j.ask(func() {
				g, err := s.Acquire(t.Context(), drivertest.Mutex(fmt.Sprint("name", i), time.Minute))
				if err != nil {
					t.Error(err)
				}
				tokens[i] = g.Token
			})
		}
		if most := j.end(); most != len(tokens) {
			t.Errorf("the largest call had %d", most)
		}
		for i, token := range tokens {
			if i > 0 && token <= tokens[i-1] {
				t.Errorf("mark %q: token %d after %d", mark, token, tokens[i-1])
			}
			if all := listed(t, s, fmt.Sprint("name", i)); len(all) == 0 || all[0].Token != token {
				t.Errorf("mark %q: name%d was granted token %d, and is listed as %+v", mark, i, token, all)
			}
		}
		if g, err := s.Acquire(t.Context(), drivertest.Mutex("next", time.Minute)); err != nil || g.Token <= tokens[len(tokens)-1] {
			t.Errorf("mark %q: the next one has token %d after %d: %v", mark, g.Token, tokens[len(tokens)-1], err)
		}
	}
}

// A caller that gives up while its call waits or is under way leaves the others
// their answers; if it was not sent, it never is.
func TestWhoGivesUpLeavesTheOthers(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "")
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{}, 2)
	j := newJam(t, s)
	for i := range 8 {
		leaves := i == 3 || i == 5
		j.ask(func() {
			ask := t.Context()
			if leaves {
				ask = ctx
			}
			_, err := s.Acquire(ask, drivertest.Mutex(fmt.Sprint("name", i), time.Minute))
			if leaves != (err != nil) || driver.Certain(err) != !leaves {
				t.Errorf("name%d: %v", i, err)
			}
			if leaves {
				left <- struct{}{}
			}
		})
	}
	cancel()
	<-left
	<-left
	if most := j.end(); most != 6 {
		t.Errorf("the largest call had %d", most)
	}
	for i := range 8 {
		if leaves := i == 3 || i == 5; leaves != (len(listed(t, s, fmt.Sprint("name", i))) == 0) {
			t.Errorf("name%d: its caller had left: %v", i, leaves)
		}
	}
}

// A user who may lock some names only is refused the others, and nobody else is.
func TestARightThatLacksSpoilsNoOtherCall(t *testing.T) {
	r := servers.Redis(t)
	do(t, r, "ACL", "SETUSER", "some", "on", ">secret", "~dibs:mark", "~dibs:{ours/*", "&*", "+@all")
	s, err := driver.Open(t.Context(), "redis://some:secret@"+r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j := newJam(t, s)
	for i := range 6 {
		name, want := fmt.Sprint("ours/", i), error(nil)
		if i == 3 {
			name, want = "theirs", driver.ErrRejected
		}
		j.ask(func() {
			if _, err := s.Acquire(t.Context(), drivertest.Mutex(name, time.Minute)); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if most := j.end(); most != 6 {
		t.Errorf("the largest call had %d", most)
	}
}

// The goroutines that make the calls of many are few, and end with the store.
func TestSendersEndWithTheStore(t *testing.T) {
	senders := func() int {
		stacks := make([]byte, 1<<22)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*senders).run(")
	}
	old := senders()
	s := open(t, servers.Redis(t).Addr(), "")
	j := newJam(t, s)
	for i := range 3 * redislock.MaxInBatch {
		j.ask(func() {
			if _, err := s.Acquire(t.Context(), drivertest.Mutex(fmt.Sprint("name", i), time.Minute)); err != nil {
				t.Error(err)
			}
		})
	}
	j.end()
	if n := senders() - old; n < 1 || n > 2*redislock.Lanes {
		t.Errorf("%d senders are kept, want some and %d at most", n, 2*redislock.Lanes)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	soon(t, "the senders end", func() bool { return senders() <= old })
}

// A store that is closed answers those that wait, too.
func TestCloseEndsThoseThatWait(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "")
	m := drivertest.Mutex("name", time.Minute)
	do(t, r, "CLIENT", "PAUSE", "60000", "ALL")
	sent, let := redislock.Hold(s)
	close(let)
	var all sync.WaitGroup
	for i := range 2 * redislock.Lanes {
		all.Go(func() { // ends with Close
			if _, err := s.Acquire(context.Background(), m); !errors.Is(err, driver.ErrClosed) {
				t.Error(err)
			}
		})
		if i < redislock.Lanes {
			<-sent
		} else {
			soon(t, "it waits", func() bool { return redislock.InLine(s) == i+1-redislock.Lanes })
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}
