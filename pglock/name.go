package pglock

import (
	"slices"

	"github.com/dibslock/dibs/driver"
)

// maxDead is how many dead places one step removes.
const maxDead = 64

// name is the state of one name as it was read, and what a step has made of it.
// The step is written only if the name's version is still the one that was read.
type name struct {
	key      string
	version  int64  // 0: the name has no row
	mark     int64  // what forgotten names have given out, as it was read
	last     int64  // the newest number given out: tokens and places are drawn from it
	readers  int64  // the fence of the present generation of shared claims
	tookOver bool   // a claim has died since the last grant
	rows     []*row // by seq
	now      int64

	// guarded are the rows, by seq, that a transaction relies on (Guard): they
	// can't be removed before it ends.
	guarded map[int64]bool

	journal bool
	changed bool // of the fields above
	gone    []*row
	events  []event
	news    []news
}

// dirty tells whether the step has anything to write.
func (n *name) dirty() bool {
	return n.changed || len(n.gone) > 0 || slices.ContainsFunc(n.rows, func(r *row) bool { return r.fresh || r.changed })
}

// draw returns a number that n never gave out before.
func (n *name) draw() int64 {
	n.last++
	n.changed = true
	return n.last
}

// end moves every claim along its way whose time is up. Only here does the clock
// end a claim.
func (n *name) end() {
	for _, r := range slices.Clone(n.rows) {
		if r.taking() && n.over(r) {
			n.remove(r)
		}
	}
}

// over moves r on until its time is not up, and tells whether it is gone.
func (n *name) over(r *row) bool {
	for r.Until <= n.now {
		switch r.state() {
		case driver.Held, driver.Handed, driver.Revoked:
			n.died(r)
			if kept := r.kept(); kept > r.Until {
				r.set(driver.Kept, kept)
				r.Died = true
			} else {
				r.set(driver.Draining, r.Until+r.Delay)
			}
		case driver.Kept:
			if !r.Died {
				return true
			}
			r.set(driver.Draining, r.Until+r.Delay)
		default:
			return true
		}
	}
	return false
}

// died tells the journal, the next holder and the former holder of r's end.
func (n *name) died(r *row) {
	n.tookOver, n.changed = true, true
	n.log(driver.EventExpired, r)
	if !r.is(driver.Revoked) { // that loss was told when it was revoked
		n.tell(news{kind: newsEnded, id: r.ID})
	}
}

// remove takes r off the name. A guarded claim stays, as one that drains, until
// the transaction that relies on it has ended.
func (n *name) remove(r *row) {
	if n.guarded[r.Seq] {
		if !r.is(driver.Draining) || r.Until > n.now {
			r.set(driver.Draining, n.now)
		}
		return
	}
	n.rows = slices.DeleteFunc(n.rows, func(o *row) bool { return o == r })
	if !r.fresh {
		n.gone = append(n.gone, r)
	}
}

// granted returns the claim with this ID that was not ended: held, handed or
// revoked.
func (n *name) granted(id string) *row {
	return n.find(func(r *row) bool { return string(r.ID) == id && r.live() })
}

// held returns the claim with this ID if its holder may act on it. No claim has
// the ID "".
func (n *name) held(id string) *row {
	return n.find(func(r *row) bool { return string(r.ID) == id && r.holds() })
}

// waiting returns the live place with this ID.
func (n *name) waiting(id string) *row {
	return n.find(func(r *row) bool { return string(r.ID) == id && r.is(driver.Waiting) && n.waits(r) })
}

func (n *name) find(ok func(*row) bool) *row {
	for _, r := range n.rows {
		if ok(r) {
			return r
		}
	}
	return nil
}

// waits tells whether the place p is waited for. One that grows needs its claim.
func (n *name) waits(p *row) bool {
	return n.now < p.Until && (len(p.Origin) == 0 || n.held(string(p.Origin)) != nil)
}

// line yields the places, live and dead: who grows stands before all others.
func (n *name) line() []*row {
	var grow, rest []*row
	for _, r := range n.rows {
		switch {
		case !r.is(driver.Waiting):
		case len(r.Origin) > 0:
			grow = append(grow, r)
		default:
			rest = append(rest, r)
		}
	}
	return append(grow, rest...)
}

// leave takes the place with this ID, live or dead, out of the line.
func (n *name) leave(id string) {
	if p := n.find(func(r *row) bool { return string(r.ID) == id && r.is(driver.Waiting) }); p != nil {
		n.remove(p)
	}
}

// room is the rule of fit without its line: whether c can be live together with
// what is live. The claim that c replaces is not in its way, unless it is guarded.
func (n *name) room(c driver.Claim) bool {
	var units int64
	smallest, exclusive := driver.Unlimited, false
	from := n.held(c.From)
	if from != nil && n.guarded[from.Seq] {
		return false
	}
	for _, r := range n.rows {
		switch {
		case !r.taking() || r == from:
			continue
		case r.is(driver.Kept) && string(r.ID) == c.ID:
			return false // it answers "held" also to the one who gave it back
		}
		units += int64(r.Units)
		smallest = min(smallest, r.Capacity)
		exclusive = exclusive || r.mode() == driver.Exclusive
	}
	return c.Fits(units, smallest, exclusive)
}

// shrinks tells whether c is a conversion that always succeeds: to fewer units of
// the same capacity, or from exclusive to anything.
func (n *name) shrinks(c driver.Claim) bool {
	from := n.held(c.From)
	return from != nil && !n.guarded[from.Seq] &&
		(from.mode() == driver.Exclusive || from.Capacity == c.Capacity && c.Units < from.Units)
}

// give makes r a live claim under a new token, in the place of the one that it
// replaces.
func (n *name) give(r *row, s driver.State, until int64) {
	token := n.draw()
	r.Token, r.Since = token, n.now
	r.TookOver, n.tookOver = n.tookOver, false
	r.Fence = n.fence(r, token)
	r.set(s, until)
	if from := n.held(string(r.Origin)); from != nil {
		n.log(driver.EventReleased, from)
		r.Heard = from.Heard
		n.remove(from)
	}
}

// fence is what a resource checks of r, which is about to be granted.
func (n *name) fence(r *row, token int64) int64 {
	switch r.mode() {
	case driver.Exclusive:
		return token
	case driver.Shared:
		// A reader joins the generation whose claims still take up units.
		if n.find(func(o *row) bool { return o != r && o.taking() && o.mode() == driver.Shared }) == nil {
			n.readers = token
		}
		return n.readers
	}
	return 0 // counted claims are not ordered by anything
}

// promote grants the leading places that fit, each for the hand-over TTL, and
// signals their waiters. It follows every step that may let a place in.
func (n *name) promote() {
	line, dead := n.line(), 0
	for i, p := range line {
		switch {
		case !n.waits(p):
			if dead == maxDead {
				n.nudge(line[i:])
				return
			}
			n.remove(p)
			dead++
		case n.room(p.claim()):
			n.give(p, driver.Handed, min(n.now+micros(handOver), p.Until))
			n.log(driver.EventHanded, p)
			n.tell(news{kind: newsHanded, id: p.ID, place: p.Seq, grant: p.grant(span(p.Until - n.now)), until: p.Until})
		default:
			return
		}
	}
}

// nudge tells the first live place of line to ask: its ask clears the dead ones
// that this step left.
func (n *name) nudge(line []*row) {
	for _, p := range line {
		if n.waits(p) {
			n.tell(news{kind: newsAsk, id: p.ID, place: p.Seq})
			return
		}
	}
}

// tell has something told once the step is written.
func (n *name) tell(w news) { n.news = append(n.news, w) }
