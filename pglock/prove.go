package pglock

import "github.com/dibslock/dibs/driver"

// renew proves c, or refreshes its place. It promotes nobody.
func (n *name) renew(c driver.Claim) driver.Proof {
	n.end()
	h := n.granted(c.ID)
	switch {
	case h == nil && c.Token == 0:
		if p := n.waiting(c.ID); p != nil {
			n.refresh(p, c, 1)
			return driver.Proof{Err: n.refusal(p.claim())}
		}
		return driver.Proof{Err: n.notHeld()}
	case h == nil || c.Token != 0 && c.Token != uint64(h.Token):
		return driver.Proof{Err: n.notHeld()}
	case h.is(driver.Revoked):
		return driver.Proof{Err: driver.ErrRevoked}
	}
	h.prove(c, n.now)
	p := driver.Proof{TTL: c.TTL}
	if c.Token == 0 {
		g := h.grant(c.TTL)
		p.Grant = &g
	}
	return p
}

// release gives back c or its place.
func (n *name) release(c driver.Claim) error {
	n.end()
	h := n.granted(c.ID)
	switch {
	case h != nil && (c.Token == 0 || c.Token == uint64(h.Token)):
		n.log(driver.EventReleased, h)
		if kept := h.kept(); c.Keep > 0 && kept > n.now {
			h.set(driver.Kept, kept)
		} else {
			n.remove(h)
		}
	case h == nil && c.Token == 0 && n.waiting(c.ID) != nil:
		n.leave(c.ID)
	default:
		return n.notHeld()
	}
	n.promote()
	return nil
}

// revoke takes the claim with r.Token away. One that is only kept or draining has
// nobody left to tell: without r.Now it stays as it is.
func (n *name) revoke(r driver.Revocation) error {
	n.end()
	h := n.find(func(h *row) bool { return h.taking() && uint64(h.Token) == r.Token })
	if h == nil {
		return n.notHeld()
	}
	holds := h.holds()
	if !holds && !r.Now {
		return nil
	}
	n.logRevoked(h, r)
	if holds {
		n.tell(news{kind: newsRevoked, id: h.ID})
	}
	if r.Now {
		n.remove(h)
		n.tookOver, n.changed = true, true
	} else {
		h.set(driver.Revoked, h.Until)
	}
	n.promote() // the name may be free, or a place that grows dead
	return nil
}
