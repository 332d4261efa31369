package sqlitelock

import (
	"context"
	"sync"

	"github.com/dibslock/dibs/driver"
)

// feedSize is how many losses a slow reader may fall behind by. What it misses,
// Renew still tells.
const feedSize = 256

// feeds are the readers of this client's losses.
type feeds struct {
	mu   sync.Mutex // guards the fields below, and sends
	all  map[chan driver.Loss]bool
	told map[string]int // by claim ID: how many looks at the file ago it was told or seen
	shut bool
}

// Losses reports claims of this client that were revoked, or whose expiry was
// noticed by this client, until ctx ends.
func (s *Store) Losses(ctx context.Context) (<-chan driver.Loss, error) {
	if err := s.read.do(ctx, func(*tx) error { return s.look.listen() }); err != nil {
		return nil, err
	}
	ch := make(chan driver.Loss, feedSize)
	if !s.feeds.add(ch) {
		return nil, driver.ErrClosed
	}
	context.AfterFunc(ctx, func() { s.feeds.drop(ch) })
	s.look.wakeUp()
	return ch, nil
}

func (f *feeds) add(ch chan driver.Loss) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return false
	}
	f.all[ch] = true
	return true
}

func (f *feeds) drop(ch chan driver.Loss) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[ch] {
		delete(f.all, ch)
		close(ch)
	}
}

func (f *feeds) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut = true
	for ch := range f.all {
		delete(f.all, ch)
		close(ch)
	}
}

// tellAll reports the losses of this client that the file shows, but for those
// that were told before. One that the file does not show any more is forgotten
// a few looks later: a look may be older than a loss that was told meanwhile.
func (f *feeds) tellAll(ls []driver.Loss) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.told {
		if f.told[id]++; f.told[id] > 3 {
			delete(f.told, id)
		}
	}
	for _, l := range ls {
		f.tellLocked(l)
	}
}

func (f *feeds) tell(l driver.Loss) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tellLocked(l)
}

func (f *feeds) tellLocked(l driver.Loss) {
	if len(f.all) == 0 {
		return
	}
	_, before := f.told[l.ID]
	f.told[l.ID] = 0
	if before {
		return
	}
	for ch := range f.all {
		select {
		case ch <- l:
		default:
		}
	}
}

func (f *feeds) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) == 0
}
