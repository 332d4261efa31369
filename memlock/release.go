package memlock

import (
	"context"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Release gives back c, or its place in line.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.CheckName(c.Name); err != nil {
		return err
	}
	if c.ID == "" {
		return driver.Rejectedf(c.Name, "the claim has no ID")
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	n := s.m.nameLocked(c.Name)
	defer s.m.forgetLocked(n)
	n.end(now)
	h := n.granted(c.ID)
	switch {
	case h != nil && (c.Token == 0 || c.Token == h.Token):
		n.release(h, c, now)
	case h == nil && c.Token == 0 && n.waiting(c.ID, now) != nil:
		n.leave(c.ID)
	default:
		return n.notHeld(now)
	}
	n.promote(now)
	return nil
}

// release ends h, which its holder gives back as c.
func (n *name) release(h *claim, c driver.Claim, now time.Time) {
	n.log(driver.EventReleased, h)
	if kept := h.kept(); c.Keep > 0 && kept.After(now) {
		h.state, h.until = driver.Kept, kept
		return
	}
	n.remove(h)
}
