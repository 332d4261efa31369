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
	first := memlock.New(memlock.Options{Journal: true})
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
