package dibs

import (
	"hash/maphash"
	"sync/atomic"
)

// A crowd remembers which names others were in the way of lately, to guess
// whether the next ask will be refused. Whoever expects that subscribes before it
// asks for the first time, and need not ask again after the refusal (law 28 holds
// either way); whoever does not saves the subscription. A guess costs a wrong
// guesser one call, and nothing else depends on it, so that names may share a
// seat.
type crowd struct {
	seats [256]atomic.Uint32 // how many asks in a row must be granted at once until the crowd is gone
}

// stays is how many grants at once it takes to believe that a crowd is gone.
const stays = 4

var crowdSeed = maphash.MakeSeed()

func (c *crowd) seat(name string) *atomic.Uint32 {
	return &c.seats[maphash.String(crowdSeed, name)%uint64(len(c.seats))]
}

// expected tells whether others are likely to be in the way on name.
func (c *crowd) expected(name string) bool { return c.seat(name).Load() > 0 }

// met notes whether others were in the way of a first ask.
func (c *crowd) met(name string, others bool) {
	seat := c.seat(name)
	if others {
		seat.Store(stays)
	} else if n := seat.Load(); n > 0 {
		seat.CompareAndSwap(n, n-1)
	}
}
