package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// A client that lists too few of the nodes, or one server twice, does not get in;
// nor does a list of an even number.
func TestQuorumListsAgree(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 6)
	q := newQuorum(t, addrsOf(rs[:5]), "prefix=p")
	alias := proxy.New(t, rs[0].Addr())
	for what, addrs := range map[string][]string{
		"three of five":            q.addrs[:3],
		"a server under two names": {q.addrs[0], alias.Addr(), q.addrs[2], q.addrs[3], q.addrs[4]},
		"the same name twice":      {q.addrs[0], q.addrs[0], q.addrs[2], q.addrs[3], q.addrs[4]},
		"four":                     q.addrs[:4],
		"one":                      q.addrs[:1],
	} {
		s, err := driver.Open(t.Context(), quorum{addrs, q.params}.url())
		if err == nil && what == "a server under two names" {
			// The second of the two was slow, and is found out when it answers.
			soon(t, what+": it does not vote twice", func() bool {
				all, err := s.(driver.Diagnoser).Diagnose(t.Context())
				return err == nil && slices.ContainsFunc(all, func(f driver.Finding) bool { return strings.Contains(f.Text, "are the same server") })
			})
			s.Close()
			continue
		}
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", what)
			continue
		}
		isRejected(t, err)
	}
	// A stranger in the place of one node does not vote; the others go on.
	s := quorum{append([]string{rs[5].Addr()}, q.addrs[1:]...), q.params}.open(t)
	drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	// What is a node already is not made one again, and all have to be there.
	isRejected(t, redislock.RedlockInit(t.Context(), q.url()))
	gone := quorum{append([]string{"127.0.0.1:1"}, addrsOf(rs[:2])...), "prefix=other"}
	if err := redislock.RedlockInit(t.Context(), gone.url()); err == nil || driver.Certain(err) {
		t.Errorf("init without one node: %v", err)
	}
	for why, addrs := range map[string][]string{
		"odd number":          addrsOf(rs[:4]),
		"are the same server": {rs[0].Addr(), alias.Addr(), rs[1].Addr()},
	} {
		if err := redislock.RedlockInit(t.Context(), quorum{addrs, "prefix=other"}.url()); !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), why) {
			t.Errorf("init of %v: %v, want %q", addrs, err, why)
		}
	}
	if _, err := driver.Open(t.Context(), quorum{addrsOf(rs[:3]), "prefix=third"}.url()); !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "dibs redlock init") {
		t.Errorf("a quorum that was never made: %v", err)
	}
}

// Any two of five nodes may be down, or silent; three may not.
func TestQuorumStandsTheLossOfAMinority(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 5)
	behind, ps := newQuorum(t, addrsOf(rs), "prefix=p").proxied(t)
	s := behind.open(t)
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	for i, fault := range []proxy.Mode{proxy.BlackHole, proxy.Refuse} {
		ps[i].Set(fault)
		ps[i].CutAll()
		soon(t, fmt.Sprintf("a renewal, %v on node %d", fault, i), func() bool {
			return drivertest.RenewOne(t.Context(), s, m).Err == nil
		})
		last := m.Token
		drivertest.MustRelease(t, s, m)
		if m, _ = drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute)); m.Token <= last {
			t.Fatalf("token %d after %d", m.Token, last)
		}
	}
	ps[2].Set(proxy.Refuse)
	ps[2].CutAll()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := s.Acquire(ctx, drivertest.Mutex("other", 2*time.Second)); err == nil || driver.Certain(err) {
		t.Errorf("with two nodes of five: %v", err)
	}
	if p := drivertest.RenewOne(ctx, s, m); p.Err == nil || driver.Certain(p.Err) {
		t.Errorf("renewed with two nodes of five: %v", p.Err)
	}
	for _, p := range ps {
		p.Heal()
	}
	soon(t, "a renewal", func() bool { return drivertest.RenewOne(t.Context(), s, m).Err == nil })
}

// What a script may not do in its midst leaves open what it has done on a node.
func TestNodesThatDenyInAScript(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 3)
	q := newQuorum(t, addrsOf(rs), "prefix=p")
	s := q.open(t)
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	for _, r := range rs {
		do(t, r, "ACL", "SETUSER", "default", "-time")
	}
	if _, err := s.Acquire(t.Context(), drivertest.Mutex("other", time.Minute)); err == nil || driver.Certain(err) || !strings.Contains(err.Error(), "ACL") {
		t.Errorf("acquire: %v", err)
	}
	if p := drivertest.RenewOne(t.Context(), s, m); p.Err == nil || driver.Certain(p.Err) {
		t.Errorf("renew: %v", p.Err)
	}
	for _, r := range rs {
		do(t, r, "ACL", "SETUSER", "default", "+time")
	}
	drivertest.MustRelease(t, s, m)
}

// A node that hangs is not waited for, by anybody.
func TestHungNodeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 5)
	s := newQuorum(t, addrsOf(rs), "prefix=p").open(t)
	if err := rs[3].Pause(); err != nil {
		t.Fatal(err)
	}
	defer rs[3].Resume()
	// A node may take a whole TTL's eighth, which is two seconds here: a hundred
	// turns that waited for it would take more than three minutes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 100 {
		m := drivertest.Mutex(fmt.Sprint("name", i%3), time.Minute)
		g, err := s.Acquire(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		m.Token = g.Token
		if p := drivertest.RenewOne(ctx, s, m); p.Err != nil {
			t.Fatal(p.Err)
		}
		if err := s.Release(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
}

// What a node applies late is taken back there, whether the attempt was granted
// and given back, or refused.
func TestLateVotesAreTakenBack(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 5)
	s := newQuorum(t, addrsOf(rs), "prefix=p").open(t)
	for _, what := range []string{"granted", "refused", "unknown"} {
		paused := rs[3:4]
		if what == "unknown" {
			paused = rs[2:5]
		}
		var held driver.Claim
		if what == "refused" {
			held, _ = drivertest.MustAcquire(t, s, drivertest.Mutex(what, 10*time.Second))
		}
		for _, r := range paused {
			if err := r.Pause(); err != nil {
				t.Fatal(err)
			}
		}
		m := drivertest.Mutex(what, 8*time.Second)
		g, err := s.Acquire(t.Context(), m)
		m.Token = g.Token
		switch {
		case what == "granted" && err != nil, what == "refused" && !errors.Is(err, driver.ErrHeld), what == "unknown" && (err == nil || driver.Certain(err)):
			t.Fatalf("%s: %v", what, err)
		case what == "granted":
			drivertest.MustRelease(t, s, m)
		case what == "refused":
			drivertest.MustRelease(t, s, held)
		}
		for _, r := range paused {
			if err := r.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		soon(t, what+": the names are free on all nodes", func() bool { return len(keysOn(t, rs, "p")) == 0 })
	}
	soon(t, "nothing is owed", func() bool { return redislock.Owed(s) == 0 })
}

// What is given back is given back on every node, and so is an attempt that most
// nodes have granted and few have told.
func TestAttemptsAreTakenBackEverywhere(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 5)
	behind, ps := newQuorum(t, addrsOf(rs), "prefix=p").proxied(t)
	s := behind.open(t)
	free := func(what string) {
		t.Helper()
		end := time.Now().Add(patience / 2)
		for {
			held := keysOn(t, rs, "p")
			if len(held) == 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: still held: %v", what, held)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("released", time.Hour))
	drivertest.MustRelease(t, s, m)
	free("released")
	for _, p := range ps[:3] {
		p.Set(proxy.DropReplies)
	}
	if _, err := s.Acquire(t.Context(), drivertest.Mutex("unknown", time.Hour)); err == nil || driver.Certain(err) {
		t.Fatalf("three of five answers were lost: %v", err)
	}
	for _, p := range ps[:3] {
		p.Heal()
	}
	free("unknown")
}

// A node that has lost its memory does not complete a majority, so that nobody
// holds a name twice, and votes again when it was readmitted.
func TestNodeWithoutMemoryDoesNotVote(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 3)
	q := newQuorum(t, addrsOf(rs), "prefix=p")
	a, b := q.open(t), q.open(t)
	for _, r := range rs[1:] { // what they come back with is from before the lock
		do(t, r, "SAVE")
	}
	if err := rs[2].Kill(); err != nil { // the lock is held by a bare majority
		t.Fatal(err)
	}
	const ttl = 3 * time.Second
	drivertest.MustAcquire(t, a, drivertest.Mutex("name", ttl))
	for _, lose := range []struct {
		how string
		do  func() error
	}{
		{"restart", func() error { return errors.Join(rs[1].Kill(), rs[1].Restart()) }},
		{"flush", func() error { _, err := rs[1].Do("FLUSHALL"); return err }},
	} {
		if err := lose.do(); err != nil {
			t.Fatal(err)
		}
		if err := rs[2].Restart(); err != nil { // a node that remembers no more
			t.Fatal(err)
		}
		for range 20 {
			if _, err := b.Acquire(t.Context(), drivertest.Mutex("name", ttl)); err == nil {
				t.Fatalf("%s: granted with the votes of nodes without memory", lose.how)
			}
		}
	}
	nodes, err := redislock.RedlockStatus(t.Context(), q.url())
	if err != nil || !nodes[0].Votes || nodes[1].Votes || nodes[2].Votes || nodes[1].Why == "" || nodes[1].Largest != 0 {
		t.Fatalf("status %+v, %v", nodes, err)
	}
	// Two of three are too many: one can't vouch for them.
	isRejected(t, redislock.RedlockReadmit(t.Context(), q.url(), rs[1].Addr()))
	isRejected(t, redislock.RedlockReadmit(t.Context(), q.url(), rs[0].Addr()))
	isRejected(t, redislock.RedlockReadmit(t.Context(), q.url(), "elsewhere:1"))
}

// A node that is readmitted goes on from the largest counter of the others, and
// not before every claim that it may have forgotten has ended.
func TestReadmission(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(t *testing.T, r *servers.RedisServer){
		"flushed": func(t *testing.T, r *servers.RedisServer) { do(t, r, "FLUSHALL") },
		"restarted": func(t *testing.T, r *servers.RedisServer) {
			if err := errors.Join(r.Kill(), r.Restart()); err != nil {
				t.Fatal(err)
			}
		},
		"restarted from an old dump": func(t *testing.T, r *servers.RedisServer) {
			do(t, r, "SAVE")
			if err := errors.Join(r.Kill(), r.Restart()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rs := servers.Redises(t, 3)
			q := newQuorum(t, addrsOf(rs), "prefix=p")
			s := q.open(t)
			var last uint64
			next := func() {
				t.Helper()
				m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", 2*time.Second))
				if m.Token <= last {
					t.Fatalf("token %d after %d", m.Token, last)
				}
				last = m.Token
				drivertest.MustRelease(t, s, m)
			}
			for range 5 {
				next()
			}
			lose(t, rs[1])
			next()
			if err := redislock.RedlockReadmit(t.Context(), q.url(), rs[1].Addr()); !errors.Is(err, driver.ErrRejected) {
				t.Fatalf("readmitted at once: %v", err)
			}
			soon(t, "it is readmitted", func() bool { return redislock.RedlockReadmit(t.Context(), q.url(), rs[1].Addr()) == nil })
			nodes, err := redislock.RedlockStatus(t.Context(), q.url())
			if err != nil || !nodes[1].Votes || nodes[1].Largest < last {
				t.Fatalf("readmitted after %d, and %+v, %v", last, nodes, err)
			}
			if err := rs[0].Kill(); err != nil { // now its vote is needed
				t.Fatal(err)
			}
			s = q.open(t)
			for range 3 {
				next()
			}
		})
	}
}

// A node that writes down what it answers may restart as it likes.
func TestDurableNodeVotesAfterARestart(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 3, servers.Durable())
	s := newQuorum(t, addrsOf(rs), "prefix=p").open(t)
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	soon(t, "all nodes have it", func() bool { return len(keysOn(t, rs, "p")) == 3 })
	for _, r := range rs[:2] {
		if err := errors.Join(r.Kill(), r.Restart()); err != nil {
			t.Fatal(err)
		}
	}
	if err := rs[2].Kill(); err != nil {
		t.Fatal(err)
	}
	soon(t, "a renewal", func() bool { return drivertest.RenewOne(t.Context(), s, m).Err == nil })
	if _, err := s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute)); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("a name that was held before the restart: %v", err)
	}
}

// A node that missed a grant is given it with the next renewal, so that another
// may fail after that.
func TestRenewalFillsNodes(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 3)
	behind, ps := newQuorum(t, addrsOf(rs), "prefix=p").proxied(t)
	s := behind.open(t)
	ps[0].Set(proxy.Refuse)
	ps[0].CutAll()
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	ps[0].Heal()
	soon(t, "the node has it", func() bool {
		if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
			t.Fatal(p.Err)
		}
		return len(keysOn(t, rs, "p")) == 3
	})
	ps[1].Set(proxy.Refuse)
	ps[1].CutAll()
	if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
		t.Errorf("with the node that was filled: %v", p.Err)
	}
}

// Several that ask at once get on: nobody is starved by votes that are split.
func TestSplitVotes(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 5)
	q := newQuorum(t, addrsOf(rs), "prefix=p")
	const clients, turns = 5, 20
	var (
		mu     sync.Mutex // guards tokens
		tokens []uint64
		wg     sync.WaitGroup
	)
	for range clients {
		client, err := dibs.New(q.open(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { // ends after its turns
			for range turns {
				l, err := client.With(dibs.Settings{TTL: 10 * time.Second}).Mutex("name").Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				tokens = append(tokens, l.Fence())
				mu.Unlock()
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			t.Fatalf("token %d after %d", tokens[i], tokens[i-1])
		}
	}
}

// A claim has one token, by which it is listed and taken away, and when it is given
// back it is gone from all nodes, also where the counter is another. That is made the
// counter of all then.
func TestANodeWithAnotherCounter(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 3)
	s := newQuorum(t, addrsOf(rs), "prefix=p").open(t)
	base, err := strconv.ParseUint(do(t, rs[2], "HGET", "p:redlock:node", "base").(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	do(t, rs[2], "HSET", "p:redlock:node", "base", base+5) // as if it had forgotten other names
	for i := range 20 {
		m, g := drivertest.MustAcquire(t, s, drivertest.Mutex(fmt.Sprint("name", i), time.Minute))
		soon(t, "all nodes have it", func() bool { return len(keysOn(t, rs, "p")) == 3 })
		for h, err := range s.(driver.Lister).List(t.Context(), m.Name) {
			if err != nil || h.Token != g.Token {
				t.Fatalf("held under %d, and listed as %+v, %v", g.Token, h, err)
			}
			if err := s.(driver.Revoker).Revoke(t.Context(), driver.Revocation{Name: h.Name, Token: h.Token}); err != nil {
				t.Errorf("taken away by the token that is listed: %v", err)
			}
		}
		drivertest.MustRelease(t, s, m)
		soon(t, "it is gone from all nodes", func() bool { return len(keysOn(t, rs, "p")) == 0 })
		soon(t, "all nodes have one counter", func() bool {
			var first string
			for i, r := range rs {
				counter, _, _ := strings.Cut(do(t, r, "GET", "p:redlock:name:{"+m.Name+"}").(string), " ")
				if i == 0 {
					first = counter
				} else if counter != first {
					return false
				}
			}
			return true
		})
	}
	// So that any node may fail while a claim is held.
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name0", time.Minute))
	soon(t, "all nodes have it", func() bool { return len(keysOn(t, rs, "p")) == 3 })
	if err := rs[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
		t.Errorf("without one of the others: %v", p.Err)
	}
}

// Validate is an exact answer to whether a lease is the newest: it asks a majority.
func TestValidateAsksAMajority(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 3)
	q := newQuorum(t, addrsOf(rs), "prefix=p")
	behind, ps := q.proxied(t)
	client, err := dibs.New(behind.open(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := client.With(dibs.Settings{TTL: time.Hour}).Mutex("name").Lock(t.Context()) // it is not renewed meanwhile
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Validate(t.Context()); err != nil {
		t.Errorf("it is the newest: %v", err)
	}
	soon(t, "all nodes have it", func() bool { return len(keysOn(t, rs, "p")) == 3 })
	for _, p := range ps[:2] {
		p.Set(proxy.BlackHole)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := l.Validate(ctx); err == nil || errors.Is(err, dibs.ErrLost) || l.Check() != nil {
		t.Errorf("most nodes do not answer: %v", err)
	}
	for _, p := range ps {
		p.Heal()
	}
	soon(t, "it is the newest", func() bool { return l.Validate(t.Context()) == nil })
	for _, r := range rs[:2] {
		do(t, r, "SET", "p:redlock:name:{name}", fmt.Sprintf("f%d 0 1", l.Fence()))
	}
	drivertest.MustAcquire(t, q.open(t), drivertest.Mutex("name", time.Minute))
	if err := l.Validate(t.Context()); !errors.Is(err, dibs.ErrLost) {
		t.Errorf("another was granted the name: %v", err)
	}
}
