package redislock

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
	if _, err := s.listen(ctx, ""); err != nil {
		return nil, err
	}
	b := s.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	f := &feed{ch: make(chan driver.Loss, maxLosses)}
	b.feeds[f] = struct{}{}
	f.unbind = context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.endFeedLocked(f)
	})
	return f.ch, nil
}

// endFeedLocked closes f, once.
func (b *inbox) endFeedLocked(f *feed) {
	if _, ok := b.feeds[f]; !ok {
		return
	}
	delete(b.feeds, f)
	f.unbind()
	close(f.ch)
}

// lostLocked tells the feeds of a loss.
func (b *inbox) lostLocked(l driver.Loss) {
	for f := range b.feeds {
		select {
		case f.ch <- l:
		default: // its reader is far behind, and finds out by Renew
		}
	}
}
