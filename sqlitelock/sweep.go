package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"time"
)

const (
	// sweepEvery is how often a client looks for what the dead have left.
	sweepEvery = time.Minute
	// sweepBatch is how many names or records one sweep clears.
	sweepBatch = 200
	// keepTimeEvery is how old the written record clock gets.
	keepTimeEvery = 10 * time.Minute
)

// sweep clears away what the dead have left: their claims on names that nobody
// asks for, their life files, deaths that nobody wants to know of any more,
// records past their retention; and it re-stamps what a reboot left behind. It
// only makes room: no claim's end hangs on it. If there is nothing, it writes
// nothing.
func (l *lookout) sweep(ctx context.Context) {
	var names []string
	collect := func(row []sqldriver.Value) bool {
		name, _ := row[0].(string)
		names = append(names, name)
		return true
	}
	write := false
	err := l.s.read.do(ctx, func(t *tx) (err error) {
		if write, err = t.recordsDue(); err != nil {
			return err
		}
		return t.each("namesOver", collect, t.domain, t.now-int64(memory), int64(sweepBatch))
	})
	if err != nil {
		return
	}
	l.s.life.leftovers(func(client int64) (done bool) {
		found := len(names)
		err := l.s.read.do(ctx, func(t *tx) error {
			return t.each("namesOfClient", collect, client, int64(sweepBatch))
		})
		return err == nil && len(names) == found // no row needs the file any more
	})
	if len(names) > 0 && l.settle(ctx, names) != nil || !write {
		return
	}
	_ = l.s.write.do(ctx, func(t *tx) error {
		if err := t.keepTime(); err != nil {
			return err
		}
		t.err = t.v.c.run("sweepRecords", t.v.meta.high, int64(sweepBatch))
		return t.err
	})
}

// recordsDue tells whether there are records past their retention, or the record
// clock was not written for long.
func (t *tx) recordsDue() (bool, error) {
	m, err := t.v.known()
	if err != nil {
		t.err = err
		return false, err
	}
	now := m.time(t.now, t.s.clock).UnixNano()
	due := now-m.high > int64(keepTimeEvery)
	return due, t.each("recordsOver", func([]sqldriver.Value) bool {
		due = true
		return false
	}, now)
}
