package pglock

import (
	"context"
	"maps"

	"github.com/dibslock/dibs/driver"
)

// Watch subscribes on behalf of c.
func (a *Advisory) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	if err := driver.CheckName(c.Name); err != nil {
		return nil, nil, err
	}
	k, err := a.key(ctx, c.Name)
	if err != nil {
		return nil, nil, err
	}
	ch := make(chan driver.Signal, 1)
	if !a.await(k, ch) {
		return nil, nil, driver.ErrClosed
	}
	drop := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting[k], ch)
		if len(a.waiting[k]) == 0 {
			delete(a.waiting, k)
		}
	}
	// The session hears what is told from its start on, if those who tell see that
	// somebody waits.
	if err := a.sessions[0].do(ctx, &request{kind: requestHear}).err; err != nil {
		drop()
		return nil, nil, err
	}
	unbind := context.AfterFunc(ctx, drop)
	return ch, func() { unbind(); drop() }, nil
}

func (a *Advisory) await(k key, ch chan driver.Signal) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life.Err() != nil {
		return false
	}
	if a.waiting[k] == nil {
		a.waiting[k] = make(map[chan driver.Signal]bool)
	}
	a.waiting[k][ch] = true
	return true
}

// waited tells whether anybody waits here.
func (a *Advisory) waited() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) > 0
}

// tell has those who wait for k ask again.
func (a *Advisory) tell(k key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ring(a.waiting[k])
}

// tellAll has everybody ask again: something may have been missed.
func (a *Advisory) tellAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for chs := range maps.Values(a.waiting) {
		ring(chs)
	}
}

func ring(chs map[chan driver.Signal]bool) {
	for ch := range chs {
		select {
		case ch <- driver.Signal{}:
		default:
		}
	}
}
