package memlock

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
)

// maxEvents is how many events the journal keeps; older ones are dropped.
const maxEvents = 10_000

// Events yields the journal after seq, as of its start. It is unsupported if the
// journal is off.
func (s *Store) Events(ctx context.Context, prefix string, seq uint64) iter.Seq2[driver.Event, error] {
	return func(yield func(driver.Event, error) bool) {
		events, err := s.events(ctx)
		if err != nil {
			yield(driver.Event{}, err)
			return
		}
		for _, e := range events {
			if e.Seq > seq && strings.HasPrefix(e.Name, prefix) && !yield(e, nil) {
				return
			}
		}
	}
}

func (s *Store) events(ctx context.Context) ([]driver.Event, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.m.mu.Unlock()
	if !s.m.journal {
		return nil, driver.Unsupportedf("the journal of this memory is off: open it with ?journal=on")
	}
	return slices.Clone(s.m.events), nil
}

// log writes what happened to h.
func (n *name) log(kind driver.EventKind, h *claim) {
	e := driver.Event{Kind: kind, Token: h.Token, Fence: h.fence, Units: h.Units, Capacity: h.Capacity, Note: h.Note}
	e.TookOver = h.tookOver && (kind == driver.EventGranted || kind == driver.EventHanded)
	n.write(e)
}

// logRevoked writes that an operator took h away.
func (n *name) logRevoked(h *claim, r driver.Revocation) {
	n.write(driver.Event{
		Kind: driver.EventRevoked, Token: h.Token, Fence: h.fence, Units: h.Units, Capacity: h.Capacity,
		Now: r.Now, Note: h.Note, Reason: r.Reason,
	})
}

// write appends e if the journal is on.
func (n *name) write(e driver.Event) {
	m := n.m
	if !m.journal {
		return
	}
	m.seq++
	e.Seq, e.Name, e.At = m.seq, n.key, time.Now().Round(0)
	m.events = append(m.events, e)
	if len(m.events) > maxEvents {
		m.events = m.events[1:]
	}
}
