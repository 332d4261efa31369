package fence

import (
	"context"
	"sync"
)

// Memory guards what lives in this process: a file, a device, a cache. It keeps a
// token a name for as long as it lives. The zero value is ready; it must not be
// copied. It is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex // guards names
	names map[string]*cell
}

// A cell is the memory of one name.
type cell struct {
	turn   chan struct{} // holds one thing while the name is in use; guards newest
	newest uint64
}

// Do runs fn unless a newer token than the lease's was seen, which is a
// *StaleError. What runs under one name runs one at a time, so that fn is over
// before a newer token is taken: fn should be the write alone, or the read alone,
// and must not call Do on the same name. ctx bounds the wait for others; its cause
// is the error. Otherwise the error is fn's.
func (m *Memory) Do(ctx context.Context, lease Fenced, fn func() error) error {
	name, token, err := offered(lease)
	if err != nil {
		return err
	}
	c := m.cell(name)
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.leave()
	if err := judge(name, token, c.raise(token)); err != nil {
		return err
	}
	return fn()
}

// Raise is a [Store]'s. It waits for a Do that runs under the name.
func (m *Memory) Raise(ctx context.Context, name string, token uint64) (newest uint64, err error) {
	c := m.cell(name)
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.leave()
	return c.raise(token), nil
}

func (m *Memory) cell(name string) *cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.names[name]
	if c == nil {
		if m.names == nil {
			m.names = make(map[string]*cell)
		}
		c = &cell{turn: make(chan struct{}, 1)}
		m.names[name] = c
	}
	return c
}

func (c *cell) enter(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *cell) leave() { <-c.turn }

func (c *cell) raise(token uint64) uint64 {
	c.newest = max(c.newest, token)
	return c.newest
}
