package memlock

import (
	"context"

	"github.com/dibslock/dibs/driver"
)

// feed is one caller's feed of losses.
type feed struct {
	ch     chan driver.Loss
	unbind func() bool
}

// maxLosses is how many losses a feed holds; more are not reported.
const maxLosses = 256

// Losses reports the claims of this client that were revoked, at once, and those
// that expired, when that is noticed: by any call on the name. The channel is
// closed when ctx ends, and by Close.
func (s *Store) Losses(ctx context.Context) (<-chan driver.Loss, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.m.mu.Unlock()
	f := &feed{ch: make(chan driver.Loss, maxLosses)}
	s.feeds[f] = struct{}{}
	f.unbind = context.AfterFunc(ctx, func() {
		s.m.mu.Lock()
		defer s.m.mu.Unlock()
		s.endFeedLocked(f)
	})
	return f.ch, nil
}

// endFeedLocked closes f, once.
func (s *Store) endFeedLocked(f *feed) {
	if _, ok := s.feeds[f]; !ok {
		return
	}
	delete(s.feeds, f)
	f.unbind()
	close(f.ch)
}

// lostLocked tells the feeds of s that its caller lost h.
func (s *Store) lostLocked(h *claim, err error) {
	for f := range s.feeds {
		select {
		case f.ch <- driver.Loss{Name: h.Name, ID: h.ID, Err: err}:
		default: // its reader is far behind, and finds out by Renew
		}
	}
}
