//go:build !linux && !darwin

package sqlitelock

import (
	"errors"
	"runtime"
)

// newClock refuses: a clock that all processes share and that no one can set is
// what exclusion hangs on here.
func newClock() (*clock, error) {
	return nil, errors.New("there is no boot clock for " + runtime.GOOS)
}
