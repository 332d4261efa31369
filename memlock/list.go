package memlock

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
)

// List yields who holds and who waits, as of its start.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		all, err := s.list(ctx, prefix)
		if err != nil {
			yield(driver.Holder{}, err)
			return
		}
		for _, h := range all {
			if !yield(*h, nil) {
				return
			}
		}
	}
}

func (s *Store) list(ctx context.Context, prefix string) ([]*driver.Holder, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	var all []*driver.Holder
	for _, key := range slices.Sorted(maps.Keys(s.m.names)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		n := s.m.names[key]
		n.end(now)
		for _, h := range n.claims {
			all = append(all, h.holder(now))
		}
		for _, p := range n.line {
			if n.live(p, now) {
				all = append(all, p.holder(n, now))
			}
		}
		s.m.forgetLocked(n)
	}
	return all, nil
}

// holder is h as an operator sees it.
func (h *claim) holder(now time.Time) *driver.Holder {
	return &driver.Holder{
		Name:     h.Name,
		State:    h.state,
		Token:    h.Token,
		Fence:    h.fence,
		Units:    h.Units,
		Capacity: h.Capacity,
		Age:      now.Sub(h.granted),
		Left:     h.until.Sub(now),
		TTL:      h.TTL,
		Note:     h.Note,
	}
}

// holder is p as an operator sees it.
func (p *place) holder(n *name, now time.Time) *driver.Holder {
	return &driver.Holder{
		Name:     p.Name,
		State:    driver.Waiting,
		Units:    p.Units,
		Capacity: p.Capacity,
		Place:    p.number,
		Age:      now.Sub(p.taken),
		Left:     p.dies(n).Sub(now),
		TTL:      p.TTL,
		Note:     p.Note,
	}
}
