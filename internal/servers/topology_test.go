package servers_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/internal/servers"
)

// A replica takes the place of a master that was killed.
func TestSentinelsFailOver(t *testing.T) {
	t.Parallel()
	s := servers.Sentinels(t, 2)
	if m, err := s.Master(); err != nil || m != s.Servers[0] {
		t.Fatalf("the master is %v, %v", m, err)
	}
	if err := s.Servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	afterwards(t, "another is the master", func() bool {
		m, err := s.Master()
		if err != nil || m == s.Servers[0] {
			return false
		}
		_, err = m.Do("SET", "k", "v")
		return err == nil
	})
}

func TestClusterFailsOver(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, 3)
	if err := c.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	afterwards(t, "its replica is a master", func() bool {
		_, err := c.Nodes[3].Do("SET", "{06S}", "v") // slot 0
		return err == nil
	})
}

func afterwards(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
