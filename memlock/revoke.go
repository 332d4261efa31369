package memlock

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/dibslock/dibs/driver"
)

// Revoke takes away the claim with r.Token. A claim that has ended already, and
// is only kept or draining, has nobody left to tell: without r.Now it stays as it
// is.
func (s *Store) Revoke(ctx context.Context, r driver.Revocation) error {
	if err := driver.CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Reason) > driver.MaxNote || !utf8.ValidString(r.Reason) {
		return driver.Rejectedf(r.Name, "the reason must be valid UTF-8 of at most %d bytes", driver.MaxNote)
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	n := s.m.nameLocked(r.Name)
	defer s.m.forgetLocked(n)
	n.end(now)
	for _, h := range n.claims {
		if h.Token == r.Token {
			n.revoke(h, r)
			n.promote(now) // the name may be free, or a place that grows dead
			return nil
		}
	}
	return n.notHeld(now)
}

// revoke marks h, or removes it.
func (n *name) revoke(h *claim, r driver.Revocation) {
	live := h.state == driver.Held || h.state == driver.Handed
	if !live && !r.Now {
		return
	}
	n.logRevoked(h, r)
	if live {
		h.client.lostLocked(h, driver.ErrRevoked)
	}
	if !r.Now {
		h.state = driver.Revoked
		return
	}
	n.remove(h)
	n.tookOver = true
}
