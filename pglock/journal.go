package pglock

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// maxEvents is how many events the journal keeps.
const maxEvents = 100_000

// An event is a row of the table events, written with the step that it tells of.
type event struct {
	Nr       int    `json:"nr"`
	Kind     uint8  `json:"kind"`
	Name     string `json:"name"`
	Token    int64  `json:"token"`
	Fence    int64  `json:"fence"`
	Units    int    `json:"units"`
	Capacity int    `json:"capacity"`
	TookOver bool   `json:"took_over"`
	Now      bool   `json:"now"`
	Note     string `json:"note"`
	Reason   string `json:"reason"`
}

// log writes what happened to r.
func (n *name) log(kind driver.EventKind, r *row) {
	e := n.event(kind, r)
	e.TookOver = r.TookOver && (kind == driver.EventGranted || kind == driver.EventHanded)
	n.write(e)
}

// logRevoked writes that an operator took h away.
func (n *name) logRevoked(h *row, r driver.Revocation) {
	e := n.event(driver.EventRevoked, h)
	e.Now, e.Reason = r.Now, strings.ReplaceAll(r.Reason, "\x00", "\uFFFD")
	n.write(e)
}

func (n *name) event(kind driver.EventKind, r *row) event {
	return event{
		Kind: uint8(kind), Name: n.key, Token: r.Token, Fence: r.Fence, Units: r.Units, Capacity: r.Capacity, Note: r.Note,
	}
}

// write keeps e to be written with the step, if there is a journal.
func (n *name) write(e event) {
	if n.journal {
		n.events = append(n.events, e)
	}
}

// Events yields the events after seq. The journal keeps about the last 100,000,
// written by those clients that were opened with a journal.
func (t *Table) Events(ctx context.Context, prefix string, seq uint64) iter.Seq2[driver.Event, error] {
	return func(yield func(driver.Event, error) bool) {
		for {
			page, err := t.events(ctx, min(seq, 1<<63-1))
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

func (t *Table) events(ctx context.Context, seq uint64) (page []driver.Event, err error) {
	err = t.call(ctx, func(ctx context.Context, s *session) error {
		page = nil
		return s.run(ctx, t.sql.named("events"), []any{int64(seq), listPage}, func(rows pgx.Rows) error {
			var e driver.Event
			var kind int16
			var at time.Time
			var seq, token, fence int64
			var units, capacity int32
			err := rows.Scan(&seq, &at, &kind, &e.Name, &token, &fence, &units, &capacity, &e.TookOver, &e.Now, &e.Note, &e.Reason)
			e.Seq, e.At, e.Kind, e.Token, e.Fence = uint64(seq), at, driver.EventKind(kind), uint64(token), uint64(fence)
			e.Units, e.Capacity = int(units), int(capacity)
			page = append(page, e)
			return err
		})
	})
	return page, err
}
