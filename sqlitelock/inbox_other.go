//go:build !linux

package sqlitelock

import "errors"

// An inbox hears of changes to life files. Here are none: the poll has to do.
type inbox struct{}

func newInbox(dir, own string, notice func()) (*inbox, error) {
	return nil, errors.ErrUnsupported
}

func (in *inbox) close() {}
