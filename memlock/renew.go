package memlock

import (
	"context"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Renew proves claims and refreshes places.
func (s *Store) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if len(cs) > s.m.facts.MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), s.m.facts.MaxBatch)
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	proofs := make([]driver.Proof, len(cs))
	for i, c := range cs {
		proofs[i] = s.m.renewLocked(c, now)
	}
	return proofs, nil
}

// renewLocked proves one claim, whatever becomes of the others.
func (m *memory) renewLocked(c driver.Claim, now time.Time) driver.Proof {
	c, err := c.Check(m.facts)
	if err != nil {
		return driver.Proof{Err: err}
	}
	n := m.nameLocked(c.Name)
	defer m.forgetLocked(n)
	n.end(now)
	h := n.granted(c.ID)
	switch {
	case h == nil && c.Token == 0:
		if p := n.waiting(c.ID, now); p != nil {
			p.refresh(c, now)
			return driver.Proof{Err: n.refusal(p.Claim, now)}
		}
		return driver.Proof{Err: n.notHeld(now)}
	case h == nil || c.Token != 0 && c.Token != h.Token:
		return driver.Proof{Err: n.notHeld(now)}
	case h.state == driver.Revoked:
		return driver.Proof{Err: driver.ErrRevoked}
	}
	h.prove(c, now)
	p := driver.Proof{TTL: c.TTL}
	if c.Token == 0 {
		g := h.grant(c.TTL)
		p.Grant = &g
	}
	return p
}

// lost tells why the claim with this ID can't be acted on.
func (n *name) lost(id string, now time.Time) error {
	if h := n.granted(id); h != nil && h.state == driver.Revoked {
		return driver.ErrRevoked
	}
	return n.notHeld(now)
}

// notHeld names the newest of those who hold n now.
func (n *name) notHeld(now time.Time) *driver.NotHeldError {
	e := &driver.NotHeldError{Name: n.key}
	if k := len(n.claims); k > 0 {
		e.By = n.claims[k-1].holder(now)
	}
	return e
}
