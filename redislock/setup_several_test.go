package redislock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// asUser does what a client does that is one of the users whose rights are printed.
func asUser(t *testing.T, s driver.Store) {
	t.Helper()
	for i := range 20 {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex(fmt.Sprint("name", i), time.Minute))
		if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
			t.Errorf("renew: %v", p.Err)
		}
		if w, ok := s.(driver.Watcher); ok {
			_, stop, err := w.Watch(t.Context(), m)
			if err != nil {
				t.Errorf("watch: %v", err)
			} else {
				stop()
			}
		}
		drivertest.MustRelease(t, s, m)
	}
	found, err := s.(driver.Diagnoser).Diagnose(t.Context())
	if err != nil || len(found) < 2 {
		t.Errorf("diagnosed as %v, %v", found, err)
	}
}

// With the rights that are printed, and those alone, a quorum is made, used, and
// mended.
func TestRightsOfAQuorum(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"line", "plain"} {
		rs := servers.Redises(t, 3)
		url := "redlock://locker:secret@" + strings.Join(addrsOf(rs), ",") + "/?prefix=locks&layout=" + layout
		for _, r := range rs {
			words := rightsOf(t, url)
			for i, w := range words {
				if w == "~NAMES*" {
					words[i] = "~name*"
				}
			}
			do(t, r, words...)
		}
		setup, err := driver.PlanSetup(url)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []bool{true, false} {
			if made, err := setup.Make(t.Context()); made != want || err != nil {
				t.Fatalf("made: %v, %v; want %v", made, err, want)
			}
		}
		do(t, rs[1], "FLUSHALL")
		if _, err := setup.Make(t.Context()); err == nil {
			t.Error("made anew with a node that has lost its memory")
		}
		soon(t, "it is readmitted", func() bool { return redislock.RedlockReadmit(t.Context(), url, rs[1].Addr()) == nil })
		asUser(t, openURL(t, url))
	}
}

// With the rights that are printed, and those alone, a cluster is used, and a master
// that sentinels watch.
func TestRightsOfSeveral(t *testing.T) {
	t.Parallel()
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := servers.Cluster(t, 3)
		url := "redis-cluster://locker:secret@" + strings.Join(c.Addrs(), ",") + "/?prefix=locks"
		for _, r := range c.Nodes {
			do(t, r, rightsOf(t, url)...)
		}
		asUser(t, openURL(t, url))
	})
	t.Run("sentinels", func(t *testing.T) {
		t.Parallel()
		s := servers.Sentinels(t, 1)
		url := fmt.Sprintf("redis-sentinel://locker:secret@%s/%s?prefix=locks&replicas=1", strings.Join(s.Addrs(), ","), s.Name)
		for _, r := range s.Servers {
			do(t, r, rightsOf(t, url)...)
		}
		asUser(t, openURL(t, url))
	})
}
