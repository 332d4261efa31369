package pglock

import (
	"time"

	"github.com/dibslock/dibs/driver"
)

// row is one row of the table claims, or the claim in a name's own: a claim or a
// place. Moments are
// microseconds by the server's clock, durations too.
type row struct {
	Name     string `json:"name"`
	Seq      int64  `json:"seq"` // drawn from the name when the row was made; a place's number
	State    uint8  `json:"state"`
	ID       []byte `json:"id"`
	Token    int64  `json:"token"`
	Fence    int64  `json:"fence"`
	Units    int    `json:"units"`
	Capacity int    `json:"capacity"`
	Since    int64  `json:"since"` // when it was granted, or its place taken
	Until    int64  `json:"until"` // when its state ends if nobody is heard of
	TTL      int64  `json:"ttl"`
	Patience int64  `json:"patience"`
	Keep     int64  `json:"keep"`
	Heard    int64  `json:"heard"` // when its holder first asked and was told; 0: not yet
	Delay    int64  `json:"delay"`
	Died     bool   `json:"died"`     // kept after a death, not after a release
	TookOver bool   `json:"by_force"` // the claim's own Grant.TookOver
	Origin   []byte `json:"origin"`   // Claim.From
	Note     string `json:"note"`

	lone    bool // the database has it in its name's own row
	fresh   bool // the database does not have it
	changed bool // the database has it otherwise
}

func (r *row) state() driver.State { return driver.State(r.State) }

// set moves r to a state that ends at until.
func (r *row) set(s driver.State, until int64) {
	r.State, r.Until, r.changed = uint8(s), until, true
}

func (r *row) is(states ...driver.State) bool {
	for _, s := range states {
		if r.state() == s {
			return true
		}
	}
	return false
}

// live tells whether its holder may still hear a yes, or that it was revoked.
func (r *row) live() bool { return r.is(driver.Held, driver.Handed, driver.Revoked) }

// holds tells whether its holder may act on it.
func (r *row) holds() bool { return r.is(driver.Held, driver.Handed) }

// taking tells whether it takes up units.
func (r *row) taking() bool { return !r.is(driver.Waiting) }

func (r *row) mode() driver.Mode { return driver.Claim{Units: r.Units, Capacity: r.Capacity}.Mode() }

// kept is the end of its Keep. A claim that was not heard of has none.
func (r *row) kept() int64 {
	if r.Heard == 0 {
		return 0
	}
	return r.Heard + r.Keep
}

// gone is when it takes up no units any more if nobody acts.
func (r *row) gone() int64 {
	switch {
	case r.is(driver.Draining), r.is(driver.Kept) && !r.Died:
		return r.Until
	case r.is(driver.Kept):
		return r.Until + r.Delay
	}
	return max(r.Until, r.kept()) + r.Delay
}

// repeats tells whether c is the claim that r is, asked for again.
func (r *row) repeats(c driver.Claim) bool {
	return r.Units == c.Units && r.Capacity == c.Capacity && string(r.Origin) == c.From
}

// prove makes it live for c.TTL from now; it never shortens.
func (r *row) prove(c driver.Claim, now int64) {
	r.set(driver.Held, max(r.Until, now+micros(c.TTL)))
	r.TTL = micros(c.TTL)
	if r.Heard == 0 {
		r.Heard = now
	}
}

// grant is the store's yes, which may be trusted for ttl.
func (r *row) grant(ttl time.Duration) driver.Grant {
	return driver.Grant{Token: uint64(r.Token), Fence: uint64(r.Fence), TTL: ttl, TookOver: r.TookOver}
}

// claim is r as it was asked for.
func (r *row) claim() driver.Claim {
	return driver.Claim{
		Name: r.Name, ID: string(r.ID), From: string(r.Origin), Units: r.Units, Capacity: r.Capacity, TTL: span(r.TTL),
		Patience: span(r.Patience), Keep: span(r.Keep), Delay: span(r.Delay), Note: r.Note,
	}
}

// holder is r as an operator sees it; end is when it ends.
func (r *row) holder(now, end int64) *driver.Holder {
	h := &driver.Holder{
		Name: r.Name, State: r.state(), Token: uint64(r.Token), Fence: uint64(r.Fence), Units: r.Units, Capacity: r.Capacity,
		Age: span(now - r.Since), Left: span(max(end-now, 0)), TTL: span(r.TTL), Note: r.Note,
		Foreign: string(r.ID) == stranger,
	}
	if r.is(driver.Waiting) {
		h.Place = uint64(r.Seq)
	}
	return h
}

// values are the arguments of the statement writeOne that are r's.
func (r *row) values() []any {
	return []any{
		r.Seq, int16(r.State), r.ID, r.Token, r.Fence, int32(r.Units), int32(r.Capacity), r.Since, r.Until, r.TTL,
		r.Patience, r.Keep, r.Heard, r.Delay, r.Died, r.TookOver, r.Origin, r.Note,
	}
}

// micros is d in the unit of the tables, rounded up: nothing ends early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// span is the duration of n microseconds.
func span(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
