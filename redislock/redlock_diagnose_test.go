package redislock_test

import (
	"strings"
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"
)

// found is the first finding of a check.
func found(t *testing.T, s driver.Store, check string) driver.Finding {
	t.Helper()
	all, err := s.(driver.Diagnoser).Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("nothing was found of %q: %+v", check, all)
	return driver.Finding{}
}

func TestDiagnosisOfAQuorum(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 3)
	s := newQuorum(t, addrsOf(rs), "prefix=p").open(t)
	if f := found(t, s, "quorum"); f.Level != driver.Fine || !strings.HasPrefix(f.Text, "3 of 3 nodes vote") {
		t.Errorf("all is well: %+v", f)
	}
	if f := found(t, s, "node"); f.Level != driver.Info || !strings.Contains(f.Hint, "appendfsync always") {
		t.Errorf("a node that forgets: %+v", f)
	}
	do(t, rs[1], "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	if f := found(t, s, "eviction"); f.Level != driver.Warn || !strings.HasPrefix(f.Text, rs[1].Addr()) {
		t.Errorf("a node that evicts: %+v", f)
	}
	if err := rs[0].Kill(); err != nil {
		t.Fatal(err)
	}
	soon(t, "it is noticed", func() bool {
		f := found(t, s, "quorum")
		return f.Level == driver.Warn && strings.HasPrefix(f.Text, "2 of 3 nodes vote")
	})
}

func TestDiagnosisOfACluster(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, 3)
	s := openURL(t, "redis-cluster://"+strings.Join(c.Addrs(), ","))
	if f := found(t, s, "cluster"); f.Text != "3 masters" {
		t.Errorf("found %+v", f)
	}
	if f := found(t, s, "persistence"); f.Level == driver.Fine || !strings.HasPrefix(f.Text, "127.0.0.1:") {
		t.Errorf("masters without a disk: %+v", f)
	}
}
