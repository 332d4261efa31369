package memlock_test

import (
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/memlock"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Name: "mem", Bubble: true, New: newStorage})
}

func newStorage(testing.TB) drivertest.Storage {
	return storage(memlock.New(memlock.Options{Journal: true}))
}

func storage(first *memlock.Store) drivertest.Storage {
	return drivertest.Storage{Open: func(t testing.TB) driver.Store {
		c := first.Client()
		t.Cleanup(func() { c.Close() })
		return c
	}}
}

var _ interface {
	driver.Store
	driver.Watcher
	driver.Batcher
	driver.LossFeed
	driver.Lister
	driver.Revoker
	driver.Journal
	driver.Records
} = (*memlock.Store)(nil)

// The suite also has to do with a store that lacks modes.
func TestConformanceExclusiveOnly(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Name: "mem, exclusive only", Bubble: true, New: func(testing.TB) drivertest.Storage {
		return storage(memlock.New(memlock.Options{Modes: driver.Exclusive}))
	}})
}

// Tokens that no float can hold.
func TestConformanceFromHighMark(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Name: "mem, high mark", Bubble: true, New: func(testing.TB) drivertest.Storage {
		return storage(memlock.New(memlock.Options{Journal: true, Mark: 1<<53 + 4}))
	}})
}
