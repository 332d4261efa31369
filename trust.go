package dibs

import (
	"math"
	"time"
)

// never is an instant of the clock that does not come.
const never = time.Duration(math.MaxInt64)

// trustedUntil is the whole trust rule (laws 31 and 33): what was asked at asked
// and granted for ttl is believed until then, and no longer. The store can't
// have started to count before it was asked, so it can't let another in before
// asked+ttl; drift is what two clocks may differ by over a TTL, plus what it
// takes to tell the holder.
func trustedUntil(asked, ttl time.Duration) time.Duration {
	return asked + ttl - drift(ttl)
}

// drift is 1 % of the TTL, at least 5 ms: the allowance of the Redlock paper
// (redis.io, "Distributed Locks with Redis") with a floor for the scheduler.
func drift(ttl time.Duration) time.Duration {
	return max(ttl/100, 5*time.Millisecond)
}
