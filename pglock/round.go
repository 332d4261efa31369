package pglock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A round is what a warden asks the server for in one round trip: each statement a
// transaction of its own, so that the failure of one undoes nothing of another.
type round struct {
	w       *warden
	unlock  []keyed // locks to be given back
	try     []keyed // exclusively
	shared  []keyed
	join    []keyed // locks that we share already
	hash    []*request
	query   []*request
	ping    bool
	see     bool // show that somebody waits, or that nobody does any more
	unseen  error
	after   []func(err error) // what is answered once the server has; err: it has not
	later   []*request        // for the next round
	trying  map[key]*attempt
	unheard []*request // granted, and nobody wants it
	trip    trip
}

type keyed struct {
	key
	shared bool
}

// An attempt is the one try for a key in a round, on behalf of all who ask for it
// in the same mode.
type attempt struct {
	shared bool
	rs     []*request
	ok     bool
	err    error
	fence  int64
	tokens []int64 // one for each reader
	joined bool
}

var errDoubt = errors.New("the session gave a lock back that it did not have")

// serve answers rs. What can't be said together goes into another round.
func (w *warden) serve(rs []*request) {
	for len(rs) > 0 && w.s != nil {
		r := w.round(rs...)
		r.settle(r.trip.ask())
		rs = append(r.later, r.unheard...)
	}
	for _, q := range rs { // the session has died
		w.refuse(q, unknown(errors.New("the session was lost")))
	}
}

// round plans for rs.
func (w *warden) round(rs ...*request) *round {
	r := &round{w: w, trying: make(map[key]*attempt)}
	for _, q := range rs {
		r.plan(q)
	}
	r.pack()
	return r
}

// plan decides what q needs.
func (r *round) plan(q *request) {
	if q.gone() {
		q.answer(result{err: context.Canceled})
		return
	}
	switch q.kind {
	case requestPing:
		r.ping = true
		r.after = append(r.after, func(err error) { q.answer(result{err: asUnknown(err)}) })
	case requestHear:
		r.see = r.w.seen != r.w.a.waited()
		r.after = append(r.after, func(err error) {
			if err == nil {
				err = r.unseen
			}
			q.answer(result{err: asUnknown(err)})
		})
	case requestLife:
		f, err := r.w.s.file()
		q.answer(result{file: f, err: err})
	case requestHash:
		r.hash = append(r.hash, q)
	case requestQuery:
		r.query = append(r.query, q)
	case requestList:
		q.answer(result{pid: r.w.s.pid, holders: r.w.list()})
	case requestRevoke:
		r.planRevoke(q)
	case requestReap:
		r.planReap(q)
	case requestProve:
		r.planProve(q)
	case requestUnlock:
		r.planUnlock(q)
	case requestTry:
		r.planTry(q)
	}
}

func (r *round) planProve(q *request) {
	r.ping = true
	r.after = append(r.after, func(err error) { q.answer(r.w.prove(q, err)) })
}

// prove answers the renewal of a claim after the server has answered.
func (w *warden) prove(q *request, err error) result {
	_, c := w.find(q.key, q.claim.ID)
	switch {
	case err != nil:
		return result{err: asUnknown(err)}
	case c == nil || q.claim.Token != 0 && q.claim.Token != c.Token:
		return result{err: &driver.NotHeldError{Name: q.claim.Name}}
	case c.revoked():
		return result{err: driver.ErrRevoked}
	}
	c.TTL, c.until = q.claim.TTL, time.Now().Add(q.claim.TTL)
	w.least = min(w.least, c.TTL)
	return result{grant: driver.Grant{Token: c.Token, Fence: c.fence, TTL: c.TTL}}
}

func (r *round) planUnlock(q *request) {
	l, c := r.w.find(q.key, q.claim.ID)
	if c == nil || q.claim.Token != 0 && q.claim.Token != c.Token {
		if a := r.trying[q.key]; a != nil { // its own try is under way
			r.later = append(r.later, q)
			return
		}
		e := &driver.NotHeldError{Name: q.claim.Name}
		if l != nil && len(l.claims) > 0 && l.claims[0].Name == q.claim.Name {
			e.By = l.claims[0].holder()
		}
		// It may have been lost a moment ago, with a session that was not buried yet;
		// and if the server does not answer, nothing is certain.
		r.ping = true
		r.after = append(r.after, func(err error) {
			if err == nil {
				err = e
			} else {
				err = asUnknown(err)
			}
			q.answer(result{err: err})
		})
		return
	}
	r.giveUp(q.key, l, c)
	r.after = append(r.after, func(err error) { q.answer(result{err: asUnknown(err)}) })
}

// giveUp ends c, and unlocks k if it was the last claim on that.
func (r *round) giveUp(k key, l *lock, c *lockClaim) {
	l.claims = slices.DeleteFunc(l.claims, func(o *lockClaim) bool { return o == c })
	if c.end != nil {
		c.end.Stop()
	}
	if len(l.claims) == 0 {
		delete(r.w.held, k)
		r.unlock = append(r.unlock, keyed{k, l.shared})
		r.after = append(r.after, func(error) { r.w.a.tell(k) }) // the flag is no obstacle to its own session
	} else {
		r.ping = true
	}
}

func (r *round) planTry(q *request) {
	shared := q.claim.Mode() == driver.Shared
	l, c := r.w.find(q.key, q.claim.ID)
	switch a := r.trying[q.key]; {
	case c != nil && (c.Units != q.claim.Units || c.Capacity != q.claim.Capacity || c.From != q.claim.From):
		q.answer(result{err: driver.Rejectedf(q.claim.Name, "the claim was asked for before with other units, another capacity or another claim to replace")})
	case q.claim.From != "":
		q.answer(result{err: driver.Unsupportedf("%q: pgadvisory can't convert a claim: release it and acquire anew", q.claim.Name)})
	case c != nil && c.revoked():
		q.answer(result{err: &driver.HeldError{Name: q.claim.Name, Holder: c.holder()}})
	case c != nil: // asked again: a second try would stack
		r.planProve(q)
	case a != nil && a.shared == shared && !(a.joined && !shared):
		a.rs = append(a.rs, q)
	case a != nil: // two modes of one key can't share a round
		r.later = append(r.later, q)
	case l != nil && l.shared && shared:
		r.trying[q.key] = &attempt{shared: true, joined: true, ok: true, rs: []*request{q}}
		r.join = append(r.join, keyed{q.key, true})
	case l != nil:
		q.answer(result{err: refusal(q.claim.Name, l)})
	default:
		r.trying[q.key] = &attempt{shared: shared, rs: []*request{q}}
		if shared {
			r.shared = append(r.shared, keyed{q.key, true})
		} else {
			r.try = append(r.try, keyed{q.key, false})
		}
	}
}

// settle hands out the answers; err is that of the session.
func (r *round) settle(err error) {
	if err != nil {
		r.w.die(err)
		err = unknown(err)
		if r.w.a.life.Err() != nil {
			err = driver.ErrClosed
		}
	}
	for k, a := range r.trying {
		r.tell(k, a, err)
	}
	for _, f := range r.after {
		f(err)
	}
}

// tell answers those who asked for k.
func (r *round) tell(k key, a *attempt, err error) {
	if err == nil {
		err = a.err
	}
	for i, q := range a.rs {
		l := r.w.held[k]
		switch {
		case err != nil:
			q.answer(result{err: err})
			continue
		case !a.ok, l != nil && !a.shared:
			q.answer(result{err: refusal(q.claim.Name, l)})
			continue
		}
		if l == nil {
			l = &lock{shared: a.shared}
			r.w.held[k] = l
		}
		now := time.Now()
		c := &lockClaim{Claim: q.claim, since: now, until: now.Add(q.claim.TTL)}
		c.Token = r.token(a, i)
		if r.w.a.opts.fenced {
			c.fence = uint64(a.fence)
		}
		l.claims = append(l.claims, c)
		r.w.least = min(r.w.least, c.TTL)
		if !q.answer(result{grant: driver.Grant{Token: c.Token, Fence: c.fence, TTL: c.TTL}}) {
			back := &request{kind: requestUnlock, key: k, claim: c.Claim, w: r.w, done: make(chan struct{})}
			r.unheard = append(r.unheard, back)
		}
	}
}

func (r *round) token(a *attempt, i int) uint64 {
	switch {
	case !r.w.a.opts.fenced:
		return r.w.a.draw()
	case a.shared:
		return uint64(a.tokens[i])
	}
	return uint64(a.fence)
}

// readers are the keys for which tokens are drawn, once for each who asks. They are
// drawn in a statement after the tries: it sees what the last writer left.
func (r *round) readers() []keyed {
	var ks []keyed
	for _, k := range slices.Concat(r.shared, r.join) {
		for range r.trying[k.key].rs {
			ks = append(ks, k)
		}
	}
	return ks
}

// asUnknown is err as an answer that says nothing for certain; nil stays nil.
func asUnknown(err error) error {
	if err == nil {
		return nil
	}
	return unknown(err)
}
