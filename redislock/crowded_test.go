package redislock_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// A client that locks what nobody else wants leaves the scheduler its say, since
// then an answer is noticed sooner; one that has waited for others does not, nor
// while several of its calls are under way.
func TestCrowdedIsWhoWaits(t *testing.T) {
	t.Parallel()
	r := servers.SharedRedis(t)
	crowded := func(s driver.Store) bool { return crowded(t, s)[0] }
	s, c := open(t, r.Addr(), space()), drivertest.Mutex("name", time.Minute)
	if _, err := s.(driver.LossFeed).Losses(t.Context()); err != nil { // as every client does
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if crowded(s) {
		t.Error("alone, and it takes itself for one of many")
	}
	_, stop, err := s.(driver.Watcher).Watch(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !crowded(s) {
		t.Error("it waits, and takes itself for the only one")
	}
	stop()
	if !crowded(s) {
		t.Error("it has waited, and takes itself for the only one")
	}

	p := proxy.New(t, r.Addr())
	many := open(t, p.Addr(), space())
	if crowded(many) {
		t.Error("nothing was asked for, and it takes itself for one of many")
	}
	p.Set(proxy.BlackHole)
	var all sync.WaitGroup
	all.Go(func() { // ends when the calls go through
		if _, err := many.Acquire(t.Context(), drivertest.Mutex("name", time.Minute)); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() { // likewise; calls of one kind might go as one
		if err := many.Release(t.Context(), drivertest.Mutex("another", time.Minute)); !errors.Is(err, driver.ErrNotHeld) {
			t.Error(err)
		}
	})
	soon(t, "two calls are under way", func() bool { return crowded(many) })
	p.Heal()
	all.Wait()
	soon(t, "none is", func() bool { return !crowded(many) })
}

// The calls for one lock go to all nodes of a quorum.
func TestCrowdedAreTheNodesOfAQuorum(t *testing.T) {
	t.Parallel()
	all := crowded(t, newQuorum(t, addrsOf(servers.Redises(t, 3)), space()).open(t))
	if len(all) != 3 || slices.Contains(all, false) {
		t.Errorf("of three nodes, %v", all)
	}
}

func crowded(t *testing.T, s driver.Store) []bool {
	t.Helper()
	all, err := redislock.Crowded(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
