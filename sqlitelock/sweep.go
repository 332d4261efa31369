package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
)

// sweep clears away what the dead have left: their claims on names that nobody
// asks for, their life files, deaths that nobody wants to know of any more,
// records past their retention; and it re-stamps what a reboot left behind. It
// only makes room: no claim's end hangs on it.
func (l *lookout) sweep(ctx context.Context) {
	var names []string
	collect := func(row []sqldriver.Value) bool {
		name, _ := row[0].(string)
		names = append(names, name)
		return true
	}
	err := l.s.read.do(ctx, func(t *tx) error {
		return t.v.c.each("namesOver", collect, t.domain, t.now-int64(memory), int64(sweepBatch))
	})
	if err != nil {
		return
	}
	l.s.life.leftovers(func(client int64) (done bool) {
		found := len(names)
		err := l.s.read.do(ctx, func(t *tx) error {
			return t.v.c.each("namesOfClient", collect, client, int64(sweepBatch))
		})
		return err == nil && len(names) == found // no row needs the file any more
	})
	if len(names) > 0 && l.settle(ctx, names) != nil {
		return
	}
	_ = l.s.write.do(ctx, func(t *tx) error {
		m, err := t.v.known()
		if err == nil {
			err = t.v.c.run("sweepRecords", m.time(t.now, t.s.clock).UnixNano(), int64(sweepBatch))
		}
		t.err = err
		return err
	})
}
