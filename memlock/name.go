package memlock

import (
	"slices"
	"time"

	"github.com/dibslock/dibs/driver"
)

// name is the state of one name: who holds it and who waits.
type name struct {
	m        *memory
	key      string
	last     uint64   // the newest token or place: both are drawn from it
	claims   []*claim // all that take up units, by token
	line     []*place // first come first
	readers  uint64   // the fence of the present generation of shared claims
	tookOver bool     // a claim has died since the last grant
}

// claim is a grant that takes up its units.
type claim struct {
	driver.Claim // as its holder asked for it, with its token
	client       *Store
	fence        uint64
	tookOver     bool
	state        driver.State // Held, Handed, Kept, Draining or Revoked
	granted      time.Time
	until        time.Time // when state ends if nobody is heard of
	heard        time.Time // when the holder first asked and was told; zero: not yet
	died         bool      // it is kept after a death, not after a release
}

// place is a refused claim in line.
type place struct {
	driver.Claim
	client *Store
	number uint64
	taken  time.Time
	until  time.Time // when its patience runs out
}

// maxDead is how many dead places one call removes.
const maxDead = 64

// nameLocked returns the state of key. Whoever changes it calls forgetLocked.
func (m *memory) nameLocked(key string) *name {
	n := m.names[key]
	if n == nil {
		n = &name{m: m, key: key, last: m.mark}
		m.names[key] = n
	}
	return n
}

// forgetLocked drops n if it is idle. The mark keeps its numbers from being
// given out again.
func (m *memory) forgetLocked(n *name) {
	if len(n.claims) > 0 || len(n.line) > 0 || n.tookOver {
		return
	}
	m.mark = max(m.mark, n.last)
	delete(m.names, n.key)
}

// next draws a number that n never gave out before.
func (n *name) next() uint64 {
	n.last++
	return n.last
}

// end moves every claim along its way whose time is up. Only here does the clock
// end a claim.
func (n *name) end(now time.Time) {
	n.claims = slices.DeleteFunc(n.claims, func(h *claim) bool { return n.ended(h, now) })
}

// ended moves h on until its time is not up, and tells whether it is gone.
func (n *name) ended(h *claim, now time.Time) bool {
	for !now.Before(h.until) {
		switch h.state {
		case driver.Held, driver.Handed, driver.Revoked:
			n.died(h)
			if kept := h.kept(); kept.After(h.until) {
				h.state, h.until, h.died = driver.Kept, kept, true
			} else {
				h.state, h.until = driver.Draining, h.until.Add(h.Delay)
			}
		case driver.Kept:
			if !h.died {
				return true
			}
			h.state, h.until = driver.Draining, h.until.Add(h.Delay)
		case driver.Draining:
			return true
		}
	}
	return false
}

// died tells the journal, the next holder and the former holder of h's death.
func (n *name) died(h *claim) {
	n.tookOver = true
	n.log(driver.EventExpired, h)
	if h.state != driver.Revoked { // that loss was told when it was revoked
		h.client.lostLocked(h, &driver.NotHeldError{Name: n.key})
	}
}

// kept is the end of h's Keep. A claim that was not heard of has none.
func (h *claim) kept() time.Time {
	if h.heard.IsZero() {
		return time.Time{}
	}
	return h.heard.Add(h.Keep)
}

// gone is when h takes up no units any more if nobody acts.
func (h *claim) gone() time.Time {
	switch h.state {
	case driver.Draining:
		return h.until
	case driver.Kept:
		if !h.died {
			return h.until
		}
		return h.until.Add(h.Delay)
	}
	if kept := h.kept(); kept.After(h.until) {
		return kept.Add(h.Delay)
	}
	return h.until.Add(h.Delay)
}

// held returns the claim with this ID if its holder may still act on it: nil if
// there is none, or if it was revoked or has ended. No claim has the ID "".
func (n *name) held(id string) *claim {
	if h := n.granted(id); h != nil && h.state != driver.Revoked {
		return h
	}
	return nil
}

// granted returns the claim with this ID that was not ended: held, handed or
// revoked.
func (n *name) granted(id string) *claim {
	for _, h := range n.claims {
		if h.ID == id && h.state != driver.Kept && h.state != driver.Draining {
			return h
		}
	}
	return nil
}

// waiting returns the live place with this ID, or nil.
func (n *name) waiting(id string, now time.Time) *place {
	for _, p := range n.line {
		if p.ID == id && n.live(p, now) {
			return p
		}
	}
	return nil
}

// live tells whether p is waited for. A place that grows needs its claim.
func (n *name) live(p *place, now time.Time) bool {
	return now.Before(p.until) && (p.From == "" || n.held(p.From) != nil)
}

// leave takes the place with this ID, live or dead, out of the line.
func (n *name) leave(id string) {
	n.line = slices.DeleteFunc(n.line, func(p *place) bool { return p.ID == id })
}

// remove takes h off the name.
func (n *name) remove(h *claim) {
	n.claims = slices.DeleteFunc(n.claims, func(o *claim) bool { return o == h })
}

// promote grants the leading places that fit, each for the hand-over TTL, and
// signals their waiters. It follows every step that may let a place in.
func (n *name) promote(now time.Time) {
	for dead := 0; len(n.line) > 0; {
		switch p := n.line[0]; {
		case !n.live(p, now) && dead == maxDead:
			n.nudge(now)
			return
		case !n.live(p, now):
			n.leave(p.ID)
			dead++
		case n.room(p.Claim):
			n.leave(p.ID)
			h := n.grant(p.Claim, p.client, now)
			h.state = driver.Handed
			h.until = now.Add(min(n.m.facts.HandOver, p.until.Sub(now)))
			n.log(driver.EventHanded, h)
			g := h.grant(h.until.Sub(now))
			n.m.signalLocked(p, driver.Signal{Place: p.number, Grant: &g})
		default:
			return
		}
	}
}

// nudge has the first live place ask: its ask clears away the dead ones that
// this call left.
func (n *name) nudge(now time.Time) {
	for _, p := range n.line {
		if n.live(p, now) {
			n.m.signalLocked(p, driver.Signal{Place: p.number})
			return
		}
	}
}

// room is the rule of fit without its line: whether c can be live together with
// what is live. The claim that c replaces is not in its way.
func (n *name) room(c driver.Claim) bool {
	var units int64
	smallest, exclusive := driver.Unlimited, false
	from := n.held(c.From)
	for _, h := range n.claims {
		if h == from {
			continue
		}
		units += int64(h.Units)
		smallest = min(smallest, h.Capacity)
		exclusive = exclusive || h.Mode() == driver.Exclusive
	}
	return c.Fits(units, smallest, exclusive)
}

// grant makes c a held claim under a new token, in the place of the one that it
// replaces.
func (n *name) grant(c driver.Claim, client *Store, now time.Time) *claim {
	h := &claim{Claim: c, client: client, state: driver.Held, granted: now, until: now.Add(c.TTL)}
	h.Token = n.next()
	h.fence = n.fence(h)
	h.tookOver, n.tookOver = n.tookOver, false
	if from := n.held(c.From); from != nil {
		n.log(driver.EventReleased, from)
		n.remove(from)
		h.heard = from.heard
	}
	n.claims = append(n.claims, h)
	return h
}

// fence is what a resource checks of h, which is about to be granted.
func (n *name) fence(h *claim) uint64 {
	switch h.Mode() {
	case driver.Exclusive:
		return h.Token
	case driver.Shared:
		if !slices.ContainsFunc(n.claims, func(o *claim) bool { return o.Mode() == driver.Shared }) {
			n.readers = h.Token // the first of a generation
		}
		return n.readers
	default:
		return 0 // counted claims are not ordered by anything
	}
}

// grant is the store's yes to h's holder, who may trust it for ttl.
func (h *claim) grant(ttl time.Duration) driver.Grant {
	return driver.Grant{Token: h.Token, Fence: h.fence, TTL: ttl, TookOver: h.tookOver}
}

// prove makes h live for c.TTL from now; it never shortens.
func (h *claim) prove(c driver.Claim, now time.Time) {
	h.state = driver.Held
	h.TTL = c.TTL
	if until := now.Add(c.TTL); until.After(h.until) {
		h.until = until
	}
	if h.heard.IsZero() {
		h.heard = now
	}
}
