package sqlitelock

import (
	"slices"

	"github.com/dibslock/dibs/driver"
)

// maxDead is how many dead places one step removes.
const maxDead = 64

// name is the state of one name, as read from the file, and what a step has made
// of it.
type name struct {
	key  string
	rows []*row // by seq
	gone []*row // removed by this step, and in the file
}

// A step is one operation's view of the world: the moment, who asks, and what the
// step leaves to be done once it is committed.
type step struct {
	now    int64
	domain int64
	client int64
	proof  int64
	draw   func() int64             // the next number of the mark
	dead   func(*row) bool          // whether its client is proved dead
	log    func(driver.Event)       // nil: no journal
	signal func(*row, string, bool) // tell r's waiter on the name: granted, or just to ask
	lost   func(*row, string, error)
}

// end moves every row along its way whose time is up, or whose client died. Only
// here does a claim end that nobody gave back.
func (n *name) end(s *step) {
	n.rows = slices.DeleteFunc(n.rows, func(r *row) bool {
		if r.domain != s.domain {
			r.restamp(s.now, s.domain)
		}
		if !r.taking() || !n.over(r, s) {
			return false
		}
		if r.has(flagTook) { // stays until a grant has told of it
			r.state = ended
			r.mark(changed)
			return false
		}
		n.forget(r)
		return true
	})
	n.keepOneEnded()
}

// over moves r on until its time is not up, and tells whether it is gone.
func (n *name) over(r *row, s *step) bool {
	if r.live() && s.now < r.until && s.dead(r) {
		r.until = s.now // it died, and this is when that was seen
		r.mark(changed)
	}
	for r.until <= s.now {
		switch r.state {
		case driver.Held, driver.Handed, driver.Revoked:
			n.died(r, s)
			if kept := r.keptUntil(r.keep); kept > r.until {
				r.state, r.until = driver.Kept, kept
				r.set(flagDied, true)
			} else {
				r.state, r.until = driver.Draining, later(r.until, r.delay)
			}
		case driver.Kept:
			if !r.has(flagDied) {
				return true
			}
			r.state, r.until = driver.Draining, later(r.until, r.delay)
		default:
			return true
		}
		r.mark(changed)
	}
	return false
}

// died tells the journal, the next holder and the former holder of r's end.
func (n *name) died(r *row, s *step) {
	r.set(flagTook, true)
	n.log(s, driver.EventExpired, r)
	if r.state != driver.Revoked { // that loss was told when it was revoked
		s.lost(r, n.key, &driver.NotHeldError{Name: n.key})
	}
}

// keepOneEnded drops all ended rows but one: a single one tells the next grant.
func (n *name) keepOneEnded() {
	seen := false
	n.rows = slices.DeleteFunc(n.rows, func(r *row) bool {
		if r.state != ended {
			return false
		}
		if !seen {
			seen = true
			return false
		}
		n.forget(r)
		return true
	})
}

// forget notes that r has left n.rows.
func (n *name) forget(r *row) {
	if r.change != fresh {
		n.gone = append(n.gone, r)
	}
}

// remove takes r off the name.
func (n *name) remove(r *row) {
	if i := slices.Index(n.rows, r); i >= 0 {
		n.rows = slices.Delete(n.rows, i, i+1)
		n.forget(r)
	}
}

// granted returns the claim with this ID that has not ended: held, handed or
// revoked.
func (n *name) granted(id string) *row {
	return n.find(func(r *row) bool { return r.id == id && r.live() })
}

// held returns the claim with this ID if its holder may act on it.
func (n *name) held(id string) *row {
	if id == "" { // of a claim that replaces none
		return nil
	}
	return n.find(func(r *row) bool { return r.id == id && r.holds() })
}

// waiting returns the live place with this ID.
func (n *name) waiting(id string, s *step) *row {
	return n.find(func(r *row) bool { return r.id == id && r.state == driver.Waiting && n.waits(r, s) })
}

func (n *name) find(ok func(*row) bool) *row {
	for _, r := range n.rows {
		if ok(r) {
			return r
		}
	}
	return nil
}

// waits tells whether the place r is waited for. One that grows needs its claim.
func (n *name) waits(r *row, s *step) bool {
	return s.now < r.until && (r.origin == "" || n.held(r.origin) != nil) && !s.dead(r)
}

// line yields the places, live and dead: who grows stands before all others.
func (n *name) line() []*row {
	var grow, rest []*row
	for _, r := range n.rows {
		switch {
		case r.state != driver.Waiting:
		case r.origin != "":
			grow = append(grow, r)
		default:
			rest = append(rest, r)
		}
	}
	if grow == nil {
		return rest
	}
	return append(grow, rest...)
}

// room is the rule of fit without its line: whether units of capacity can be live
// together with what is live. The claim that is to be replaced is not in the way.
func (n *name) room(c driver.Claim) bool {
	var units int64
	smallest, exclusive := driver.Unlimited, false
	from := n.held(c.From)
	for _, r := range n.rows {
		switch {
		case !r.taking() || r == from:
			continue
		case r.id == c.ID && r.state == driver.Kept:
			return false // it answers "held" also to the one who gave it back
		}
		units += int64(r.units)
		smallest = min(smallest, r.capacity)
		exclusive = exclusive || r.mode() == driver.Exclusive
	}
	return c.Fits(units, smallest, exclusive)
}

// shrinks tells whether c is a conversion that always succeeds: to fewer units of
// the same capacity, or from exclusive to anything.
func (n *name) shrinks(c driver.Claim) bool {
	from := n.held(c.From)
	return from != nil && (from.mode() == driver.Exclusive || from.capacity == c.Capacity && c.Units < from.units)
}

// fence is what a resource checks of a claim that is about to be granted.
func (n *name) fence(mode driver.Mode, token uint64) uint64 {
	switch mode {
	case driver.Exclusive:
		return token
	case driver.Shared:
		// A reader joins the generation whose claims still take up units.
		if r := n.find(func(r *row) bool { return r.taking() && r.mode() == driver.Shared }); r != nil {
			return r.fence
		}
		return token
	default:
		return 0 // counted claims are not ordered by anything
	}
}

// log writes an event about r, if there is a journal.
func (n *name) log(s *step, kind driver.EventKind, r *row) {
	if s.log != nil {
		s.log(n.event(kind, r))
	}
}

func (n *name) event(kind driver.EventKind, r *row) driver.Event {
	return driver.Event{
		Kind: kind, Name: n.key, Token: r.token, Fence: r.fence, Units: r.units, Capacity: r.capacity,
		TookOver: r.has(flagTookOver) && (kind == driver.EventGranted || kind == driver.EventHanded), Note: r.note,
	}
}

// quiet tells whether end and promote would change nothing, so that a refusal can
// be answered from a read alone.
func (n *name) quiet(s *step) bool {
	for _, r := range n.rows {
		if r.domain != s.domain || r.taking() && (r.until <= s.now || r.live() && s.dead(r)) {
			return false
		}
	}
	line := n.line()
	return len(line) == 0 || n.waits(line[0], s) && !n.room(line[0].claim(n.key))
}

// collect drops what only waited to tell the next grant of a death, if nobody
// asked for the name for long.
func (n *name) collect(s *step) {
	h := n.find(func(r *row) bool { return r.state == ended && later(r.until, memory) <= s.now })
	if h != nil {
		n.remove(h)
	}
}

// clone is a copy of n that may be changed without n.
func (n *name) clone() *name {
	c := &name{key: n.key}
	for _, r := range n.rows {
		o := *r
		c.rows = append(c.rows, &o)
	}
	return c
}

// claim is the place r as it asked.
func (r *row) claim(key string) driver.Claim {
	return driver.Claim{
		Name: key, ID: r.id, From: r.origin, Units: r.units, Capacity: r.capacity, TTL: r.ttl,
		Patience: r.patience, Keep: r.keep, Delay: r.delay, Note: r.note,
	}
}
