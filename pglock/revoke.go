package pglock

import (
	"context"
	"time"

	"github.com/dibslock/dibs/driver"
)

// revoked tells whether the claim was taken away, and is held only until its holder
// lets go or its TTL is over.
func (c *lockClaim) revoked() bool { return c.end != nil }

// planRevoke takes the claim with q's token away: at once, or when its holder has
// stopped.
func (r *round) planRevoke(q *request) {
	l := r.w.held[q.key]
	var c *lockClaim
	var others []driver.Holder
	if l != nil {
		for _, o := range l.claims {
			switch {
			case o.Name != q.claim.Name:
			case o.Token == q.claim.Token:
				c = o
			default:
				others = append(others, *o.holder())
			}
		}
	}
	if c == nil {
		q.answer(result{holders: others, err: &driver.NotHeldError{Name: q.claim.Name}})
		return
	}
	if !c.revoked() {
		r.w.a.subs.tell(digestOf(c.ID), news{kind: newsRevoked})
	}
	if q.now {
		r.giveUp(q.key, l, c)
		r.after = append(r.after, func(err error) { q.answer(result{err: asUnknown(err)}) })
		return
	}
	if !c.revoked() {
		reap := &request{kind: requestReap, key: q.key, claim: c.Claim}
		c.end = time.AfterFunc(time.Until(c.until), func() { _ = r.w.submit(reap) }) // a store that is closed needs none
	}
	q.answer(result{})
}

// planReap ends a claim that was revoked and whose TTL is over.
func (r *round) planReap(q *request) {
	if l, c := r.w.find(q.key, q.claim.ID); c != nil && c.revoked() {
		r.giveUp(q.key, l, c)
	}
	q.answer(result{})
}

// list is who holds on this session.
func (w *warden) list() []driver.Holder {
	var hs []driver.Holder
	for _, l := range w.held {
		for _, c := range l.claims {
			hs = append(hs, *c.holder())
		}
	}
	return hs
}

// query runs a prepared statement and returns its first row, as text.
func (w *warden) query(ctx context.Context, name string, args ...string) ([]string, error) {
	r := w.do(ctx, &request{kind: requestQuery, name: name, args: args})
	return r.row, r.err
}
