package sqlitelock

import (
	"io"
	"sync"
)

// A bell stands in for file events between the clients of one process: a test that
// runs in fake time can't wait for the kernel.
type bell struct {
	mu      sync.Mutex // guards notices
	notices map[int64]func()
}

// listen makes ring(client) call notice, which must not block, until Close.
func (b *bell) listen(client int64, notice func()) io.Closer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices[client] = notice
	return &pull{b, client}
}

func (b *bell) ring(client int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if notice := b.notices[client]; notice != nil {
		notice()
	}
}

// A pull is one client at a bell.
type pull struct {
	b      *bell
	client int64
}

// Close stops listening.
func (p *pull) Close() error {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	delete(p.b.notices, p.client)
	return nil
}
