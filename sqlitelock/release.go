package sqlitelock

import "github.com/dibslock/dibs/driver"

// release gives back c or its place.
func (n *name) release(c driver.Claim, s *step) error {
	n.end(s)
	h := n.granted(c.ID)
	switch {
	case h != nil && (c.Token == 0 || c.Token == h.token):
		n.letGo(h, c, s)
	case h == nil && c.Token == 0 && n.waiting(c.ID, s) != nil:
		n.leave(c.ID)
	default:
		return n.notHeld(s)
	}
	n.promote(s)
	return nil
}

// letGo ends h, which its holder gives back as c.
func (n *name) letGo(h *row, c driver.Claim, s *step) {
	n.log(s, driver.EventReleased, h)
	if kept := h.keptUntil(h.keep); c.Keep > 0 && kept > s.now {
		h.state, h.until = driver.Kept, kept
		h.mark(changed)
		return
	}
	n.remove(h)
}

// renew proves c, or refreshes its place. It promotes nobody.
func (n *name) renew(c driver.Claim, s *step) driver.Proof {
	n.end(s)
	h := n.granted(c.ID)
	switch {
	case h == nil && c.Token == 0:
		if p := n.waiting(c.ID, s); p != nil {
			p.refresh(c, s.now)
			return driver.Proof{Err: n.refusal(p.claim(n.key), s)}
		}
		return driver.Proof{Err: n.notHeld(s)}
	case h == nil || c.Token != 0 && c.Token != h.token:
		return driver.Proof{Err: n.notHeld(s)}
	case h.state == driver.Revoked:
		return driver.Proof{Err: driver.ErrRevoked}
	}
	h.prove(c, s.now)
	p := driver.Proof{TTL: c.TTL}
	if c.Token == 0 {
		g := h.grant(c.TTL)
		p.Grant = &g
	}
	return p
}

// revoke takes the claim with r.Token away. One that is only kept or draining has
// nobody left to tell: without r.Now it stays as it is.
func (n *name) revoke(r driver.Revocation, s *step) error {
	n.end(s)
	h := n.find(func(h *row) bool { return h.taking() && h.token == r.Token })
	if h == nil {
		return n.notHeld(s)
	}
	if !h.holds() && !r.Now {
		return nil
	}
	if s.log != nil {
		e := n.event(driver.EventRevoked, h)
		e.Now, e.Reason = r.Now, r.Reason
		s.log(e)
	}
	if h.holds() {
		s.lost(h, n.key, driver.ErrRevoked)
	}
	if r.Now {
		// The row stays, as the one that tells the next grant of this end.
		h.state = ended
		h.set(flagTook, true)
		n.keepOneEnded()
	} else {
		h.state = driver.Revoked
	}
	h.mark(changed)
	n.promote(s) // the name may be free, or a place that grows dead
	return nil
}

// lost tells why the claim with this ID can't be acted on.
func (n *name) lost(id string, s *step) error {
	if h := n.granted(id); h != nil && h.state == driver.Revoked {
		return driver.ErrRevoked
	}
	return n.notHeld(s)
}

// notHeld names the newest of those who hold n now.
func (n *name) notHeld(s *step) *driver.NotHeldError {
	e := &driver.NotHeldError{Name: n.key}
	var newest *row
	for _, r := range n.rows {
		if r.taking() && (newest == nil || r.token > newest.token) {
			newest = r
		}
	}
	if newest != nil {
		e.By = newest.holder(n.key, s.now)
	}
	return e
}
