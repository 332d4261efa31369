package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"iter"
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Events yields the events after seq. The journal keeps the last 20,000, written
// by those clients that were opened with Options.Journal.
func (s *Store) Events(ctx context.Context, prefix string, seq uint64) iter.Seq2[driver.Event, error] {
	return func(yield func(driver.Event, error) bool) {
		for {
			page, err := ask(ctx, s.read, func(t *tx) ([]driver.Event, error) { return t.listEvents(seq) })
			if err != nil {
				yield(driver.Event{}, err)
				return
			}
			for _, e := range page {
				seq = e.Seq
				if strings.HasPrefix(e.Name, prefix) && !yield(e, nil) {
					return
				}
			}
			if len(page) < listPage {
				return
			}
		}
	}
}

func (t *tx) listEvents(seq uint64) (page []driver.Event, err error) {
	err = t.each("listEvents", func(row []sqldriver.Value) bool {
		n := func(i int) int64 { x, _ := row[i].(int64); return x }
		s := func(i int) string { x, _ := row[i].(string); return x }
		page = append(page, driver.Event{
			Seq: uint64(n(0)), At: time.Unix(0, n(1)), Kind: driver.EventKind(n(2)), Name: s(3),
			Token: uint64(n(4)), Fence: uint64(n(5)), Units: int(n(6)), Capacity: int(n(7)),
			TookOver: n(8) != 0, Now: n(9) != 0, Note: s(10), Reason: s(11),
		})
		return true
	}, int64(min(seq, 1<<63-1)), int64(listPage))
	return page, err
}
