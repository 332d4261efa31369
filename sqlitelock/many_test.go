package sqlitelock_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/sqlitelock"
)

var plain = drivertest.Harness{Name: "sqlite", New: storage(func() *sqlitelock.Options { return &sqlitelock.Options{} }, 300*time.Millisecond)}

func TestManyLeases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 30 s, and the race detector's time")
	}
	t.Parallel()
	drivertest.Many(t, plain)
}

// Not parallel: it measures the process's heap.
func TestHeapPerLease(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the race detector's time")
	}
	drivertest.HeapPerLease(t, plain)
}
