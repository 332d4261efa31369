package memlock_test

import (
	"testing"

	"github.com/dibslock/dibs/drivertest"
)

func TestManyLeases(t *testing.T) {
	drivertest.Many(t, drivertest.Harness{Name: "mem", Bubble: true, New: newStorage})
}
