package dibs

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A group is the leases that were taken together, and the one lease that stands
// for all of them: whole is in nobody's care, and is as good as the worst part.
type group struct {
	whole *Lease
	once  sync.Once

	mu    sync.Mutex // guards parts while the group is being filled
	parts []*Lease   // in the order of their names
}

func newGroup(l *Locker) *group {
	g := &group{whole: &Lease{core: l.client.core, client: l.client, born: l.client.core.clock.now()}}
	g.whole.claim.Name = l.name
	g.whole.group = g
	g.whole.until = never
	g.whole.trust.Store(int64(never))
	return g
}

// stands returns the group that l stands for; nil: l stands for itself.
func (l *Lease) stands() *group {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group == nil || l.group.whole != l {
		return nil
	}
	return l.group
}

// add puts part into the group. If it has been lost already, the group is.
func (g *group) add(part *Lease) {
	part.mu.Lock()
	part.group = g
	part.mu.Unlock()
	g.mu.Lock()
	g.parts = append(g.parts, part)
	g.mu.Unlock()
	if err := part.Check(); err != nil {
		g.lost(err)
	}
}

// of returns the parts.
func (g *group) of() []*Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.parts
}

// done ends the filling of the group: with the whole, or with err, and then
// nothing of it is left.
func (g *group) done(ctx context.Context, err error) (*Lease, error) {
	if err == nil {
		err = g.whole.Check()
	}
	if err == nil {
		for _, p := range g.of() {
			g.whole.grant.TookOver = g.whole.grant.TookOver || p.TookOver()
		}
		return g.whole, nil
	}
	g.whole.end(ErrReleased)
	g.each(func(p *Lease) error { return p.Forgo(ctx) })
	return nil, err
}

// lost ends the whole because a part was lost, and with it the trust in all
// parts: they are given back by Release, or end by their TTL.
func (g *group) lost(cause error) {
	if !g.whole.end(cause) {
		return
	}
	for _, p := range g.of() {
		p.core.keeper.dismiss(&p.ward)
		p.end(&LostError{Reason: Together, Err: cause})
	}
}

// check looks at every part, and tells why one is lost.
func (g *group) check() error {
	for _, p := range g.of() {
		if err := p.Check(); err != nil {
			g.lost(err)
			return err
		}
	}
	return nil
}

// remaining is that of the part that can be trusted the shortest.
func (g *group) remaining() time.Duration {
	least := never
	for _, p := range g.of() {
		least = min(least, p.Remaining())
	}
	return least
}

func (g *group) validate(ctx context.Context) error {
	for _, p := range g.of() {
		if err := p.Validate(ctx); err != nil {
			if lost := g.whole.Check(); lost != nil {
				return lost
			}
			return err
		}
	}
	return g.whole.Check()
}

// release gives back every part. The error is the loss, if there was one.
func (g *group) release(ctx context.Context, keep bool) error {
	err := ErrReleased
	g.once.Do(func() {
		lost := g.whole.Check()
		if lost == nil && !g.whole.end(ErrReleased) {
			lost = g.whole.Check()
		}
		err = g.each(func(p *Lease) error { return p.release(ctx, keep) })
		if lost != nil {
			err = lost
		}
	})
	return err
}

// each calls f for every part, side by side: a call that hangs delays no other.
func (g *group) each(f func(p *Lease) error) error {
	parts := g.of()
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = f(p) }) // ends with f, which is bounded
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Fences returns the fencing token of each name that is held: see Fence. For a
// lock of one name it has that one.
func (l *Lease) Fences() map[string]uint64 {
	g := l.stands()
	if g == nil {
		return map[string]uint64{l.Name(): l.Fence()}
	}
	fences := make(map[string]uint64)
	for _, p := range g.of() {
		fences[p.Name()] = p.Fence()
	}
	return fences
}

// dismiss takes w out of care.
func (k *keeper) dismiss(w *ward) {
	k.mu.Lock()
	k.removeLocked(w)
	k.mu.Unlock()
}
