package pglock_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// TestTortureStorm kills processes, whose claims end by their TTL.
func TestTortureStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	drivertest.Storm(t, newStore(t, servers.SharedPostgres(t)), time.Second)
}

// TestTortureStormOnAdvisoryLocks kills processes, whose locks end with their
// sessions.
func TestTortureStormOnAdvisoryLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	drivertest.Storm(t, advisory(newStore(t, servers.SharedPostgres(t))), 5*time.Second)
}
