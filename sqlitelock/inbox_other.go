//go:build !linux

package sqlitelock

import "errors"

// An inbox hears of changes to life files. Here are none: the poll has to do.
type inbox struct{}

func newInbox(l *life, client int64, notice func()) (*inbox, error) {
	return nil, errors.ErrUnsupported
}

// Close does nothing.
func (in *inbox) Close() error { return nil }
