package sqlitelock

import (
	sqldriver "database/sql/driver"
	"time"

	"github.com/dibslock/dibs/driver"
)

// ended is the state of a row that takes up nothing: its claim ended by expiry or
// death, and no later grant has told so yet (Grant.TookOver).
const ended driver.State = 7

// The bits of row.flags.
const (
	flagDied     = 1 << iota // kept after a death, not after a release
	flagTook                 // the claim died, and no grant on the name has told so yet
	flagTookOver             // the claim's own Grant.TookOver
)

// row is one row of the table claims: a claim, a place, or what is left of one.
type row struct {
	seq      int64 // from the mark; a place's number
	state    driver.State
	id       string
	token    uint64
	fence    uint64
	units    int
	capacity int
	since    int64 // when it was granted, or its place taken
	until    int64 // when its state ends if nobody is heard of
	ttl      time.Duration
	patience time.Duration
	keep     time.Duration
	kept     int64 // when its holder was first told; 0: not yet
	delay    time.Duration
	flags    int
	client   int64 // whose it is: the number of a life file; 0: none
	proof    int64 // which file that was
	domain   int64 // of since, until and kept
	origin   string
	note     string

	change change // what the file does not know yet
}

// change says how a row in memory differs from the file's. A larger one includes
// the smaller.
type change uint8

const (
	same     change = iota
	extended        // until and ttl
	changed
	fresh // the file does not have it
)

func (r *row) mark(c change) { r.change = max(r.change, c) }

func (r *row) has(flag int) bool { return r.flags&flag != 0 }

func (r *row) set(flag int, on bool) {
	flags := r.flags &^ flag
	if on {
		flags |= flag
	}
	if flags != r.flags {
		r.flags = flags
		r.mark(changed)
	}
}

func (r *row) mode() driver.Mode {
	return driver.Claim{Units: r.units, Capacity: r.capacity}.Mode()
}

// live tells whether its holder may still hear a yes, or that it was revoked.
func (r *row) live() bool {
	return r.state == driver.Held || r.state == driver.Handed || r.state == driver.Revoked
}

// holds tells whether its holder may act on it.
func (r *row) holds() bool { return r.state == driver.Held || r.state == driver.Handed }

// taking tells whether it takes up units.
func (r *row) taking() bool { return r.state != driver.Waiting && r.state != ended }

// keptUntil is the end of its Keep. A claim that was not heard of has none.
func (r *row) keptUntil(keep time.Duration) int64 {
	if r.kept == 0 {
		return 0
	}
	return later(r.kept, keep)
}

// gone is when it takes up no units any more if nobody acts.
func (r *row) gone() int64 {
	switch {
	case r.state == driver.Draining, r.state == driver.Kept && !r.has(flagDied):
		return r.until
	case r.state == driver.Kept:
		return later(r.until, r.delay)
	}
	return later(max(r.until, r.keptUntil(r.keep)), r.delay)
}

// repeats tells whether c is the claim that r is, asked for again.
func (r *row) repeats(c driver.Claim) bool {
	return r.units == c.Units && r.capacity == c.Capacity && r.origin == c.From
}

// prove makes it live for c.TTL from now; it never shortens.
func (r *row) prove(c driver.Claim, now int64) {
	if r.state == driver.Handed || r.kept == 0 {
		r.state = driver.Held
		if r.kept == 0 {
			r.kept = now
		}
		r.mark(changed)
	}
	r.ttl = c.TTL
	r.until = max(r.until, later(now, c.TTL))
	r.mark(extended)
}

// grant is the store's yes, which may be trusted for ttl.
func (r *row) grant(ttl time.Duration) driver.Grant {
	return driver.Grant{Token: r.token, Fence: r.fence, TTL: ttl, TookOver: r.has(flagTookOver)}
}

// restamp brings a row of another clock domain into this one: whatever it had
// left, it now has in full. It is done once, in the file, so that a claim from
// before a reboot ends although nobody lives long enough to see its TTL through.
func (r *row) restamp(now, domain int64) {
	full := r.ttl
	switch r.state {
	case driver.Waiting:
		full = r.patience
	case driver.Handed:
		full = handOver
	case driver.Kept:
		full = r.keep
	case driver.Draining:
		full = r.delay
	case ended:
		full = 0
	}
	r.since, r.until, r.domain = now, later(now, full), domain
	if r.kept != 0 {
		r.kept = now
	}
	r.mark(changed)
}

// holder is r as an operator sees it.
func (r *row) holder(name string, now int64) *driver.Holder {
	h := &driver.Holder{
		Name: name, State: r.state, Token: r.token, Fence: r.fence, Units: r.units, Capacity: r.capacity,
		Age: time.Duration(now - r.since), Left: time.Duration(max(r.until-now, 0)), TTL: r.ttl, Note: r.note,
	}
	if r.state == driver.Waiting {
		h.Place = uint64(r.seq)
	}
	return h
}

// later is t + d, without overflow.
func later(t int64, d time.Duration) int64 {
	if sum := t + int64(d); sum >= t {
		return sum
	}
	return 1<<63 - 1
}

// scanRow reads what the statement load yields.
func scanRow(v []sqldriver.Value) *row {
	n := func(i int) int64 { x, _ := v[i].(int64); return x }
	s := func(i int) string { x, _ := v[i].(string); return x }
	return &row{
		seq: n(0), state: driver.State(n(1)), id: s(2), token: uint64(n(3)), fence: uint64(n(4)),
		units: int(n(5)), capacity: int(n(6)), since: n(7), until: n(8), ttl: time.Duration(n(9)),
		patience: time.Duration(n(10)), keep: time.Duration(n(11)), kept: n(12), delay: time.Duration(n(13)),
		flags: int(n(14)), client: n(15), proof: n(16), domain: n(17), origin: s(18), note: s(19),
	}
}

// values are the arguments of the statement save.
func (r *row) values(name string) []sqldriver.Value {
	return []sqldriver.Value{
		name, r.seq, int64(r.state), r.id, int64(r.token), int64(r.fence), int64(r.units), int64(r.capacity),
		r.since, r.until, int64(r.ttl), int64(r.patience), int64(r.keep), r.kept, int64(r.delay),
		int64(r.flags), r.client, r.proof, r.domain, r.origin, r.note,
	}
}
