package drivertest_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/memlock"
)

// mem is the harness of the reference store.
var mem = drivertest.Harness{Name: "mem", Bubble: true, New: func(testing.TB) drivertest.Storage {
	first := memlock.New(memlock.Options{})
	return drivertest.Storage{Open: func(t testing.TB) driver.Store {
		c := first.Client()
		t.Cleanup(func() { c.Close() })
		return c
	}}
}}

// TestTorture is the long one of the reference store; TestConformance has a
// short one of every store.
func TestTorture(t *testing.T) { drivertest.TortureByEnv(t, mem) }

// TestSchedules is as many short ones as scripts/schedules.sh asks for.
func TestSchedules(t *testing.T) { drivertest.Schedules(t, mem) }

// TestLateRequestConvictsNobody is the schedule in which one was sent and came late
// in the same spell of faults: its attempt had been granted by another, and given
// back, before it landed.
func TestLateRequestConvictsNobody(t *testing.T) {
	drivertest.Torture(t, mem, drivertest.TortureOptions{Seed: 2374, For: 30 * time.Second, Kills: true})
}
