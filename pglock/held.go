package pglock

import (
	"time"

	"github.com/dibslock/dibs/driver"
)

// A lock is an advisory lock that the session holds, once, for one or more claims.
type lock struct {
	shared bool
	claims []*lockClaim
}

// A lockClaim is a claim on a lock.
type lockClaim struct {
	driver.Claim // with its token
	fence        uint64
	since, until time.Time
	end          *time.Timer // set when it is revoked: ends it when its TTL is over
}

// find returns the claim with this ID on k, and its lock.
func (w *warden) find(k key, id string) (*lock, *lockClaim) {
	l := w.held[k]
	if l == nil {
		return nil, nil
	}
	for _, c := range l.claims {
		if c.ID == id {
			return l, c
		}
	}
	return l, nil
}

// holder is c as an operator sees it.
func (c *lockClaim) holder() *driver.Holder {
	now, state := time.Now(), driver.Held
	if c.revoked() {
		state = driver.Revoked
	}
	return &driver.Holder{
		Name: c.Name, State: state, Token: c.Token, Fence: c.fence, Units: c.Units, Capacity: c.Capacity,
		Age: now.Sub(c.since), Left: max(c.until.Sub(now), 0), TTL: c.TTL, Note: c.Note,
	}
}

// refusal says that name can't be had: because of l, which is ours, or of another
// session if l is nil.
func refusal(name string, l *lock) *driver.HeldError {
	e := &driver.HeldError{Name: name}
	if l != nil && len(l.claims) > 0 {
		e.Holder = l.claims[0].holder()
		if e.Holder.Name != name {
			e.Holder.Note = "another name with the same key: " + e.Holder.Name
		}
	}
	return e
}
