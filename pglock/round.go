package pglock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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
	ping    bool
	after   []func(err error) // what is answered once the server has; err: it has not
	later   []*request        // for the next round
	trying  map[key]*attempt
	unheard []*request // granted, and nobody wants it
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
		r := &round{w: w, trying: make(map[key]*attempt)}
		for _, q := range rs {
			r.plan(q)
		}
		r.run()
		rs = append(r.later, r.unheard...)
	}
	for _, q := range rs { // the session has died
		w.refuse(q, unknown(errors.New("the session was lost")))
	}
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
	case requestLife:
		f, err := r.w.s.file()
		q.answer(result{file: f, err: err})
	case requestHash:
		r.hash = append(r.hash, q)
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
	}
	c.TTL, c.until = q.claim.TTL, time.Now().Add(q.claim.TTL)
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
	l.claims = slices.DeleteFunc(l.claims, func(o *lockClaim) bool { return o == c })
	if len(l.claims) == 0 {
		delete(r.w.held, q.key)
		r.unlock = append(r.unlock, keyed{q.key, l.shared})
	} else {
		r.ping = true
	}
	r.after = append(r.after, func(err error) { q.answer(result{err: asUnknown(err)}) })
}

func (r *round) planTry(q *request) {
	shared := q.claim.Mode() == driver.Shared
	l, c := r.w.find(q.key, q.claim.ID)
	switch a := r.trying[q.key]; {
	case c != nil && (c.Units != q.claim.Units || c.Capacity != q.claim.Capacity || c.From != q.claim.From):
		q.answer(result{err: driver.Rejectedf(q.claim.Name, "the claim was asked for before with other units, another capacity or another claim to replace")})
	case q.claim.From != "":
		q.answer(result{err: driver.Unsupportedf("%q: pgadvisory can't convert a claim: release it and acquire anew", q.claim.Name)})
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

// run asks the server and hands out the answers.
func (r *round) run() {
	err := r.ask()
	if err != nil {
		r.w.die(err)
		err = unknown(err)
		if r.w.a.life.Err() != nil {
			err = driver.ErrClosed
		}
	}
	for k, a := range r.trying {
		r.settle(k, a, err)
	}
	for _, f := range r.after {
		f(err)
	}
}

// settle answers those who asked for k.
func (r *round) settle(k key, a *attempt, err error) {
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

// ask is the round trip. Its error is that of the connection, or of a session that
// is not to be relied on; what only one statement failed with is the attempts'.
func (r *round) ask() error {
	ctx, cancel := context.WithTimeout(r.w.a.life, r.w.limit())
	defer cancel()
	p := r.w.s.PgConn().StartPipeline(ctx)
	tryName := "try"
	if r.w.a.opts.fenced {
		tryName = "tryFenced"
	}
	type part struct {
		keys []keyed
		read func(row [][]byte) error
		fail func(err error) error
	}
	var parts []part
	send := func(name string, keys []keyed, read func([][]byte) error, fail func(error) error, more ...[]byte) {
		p.SendQueryPrepared(name, append(encodeKeys(keys), more...), nil, nil)
		p.SendPipelineSync()
		parts = append(parts, part{keys, read, fail})
	}
	doubt := func(err error) error { return err }
	if len(r.unlock) > 0 {
		send("unlock", r.unlock, func(row [][]byte) error {
			if string(row[2]) != "t" {
				return errDoubt
			}
			return nil
		}, doubt, flags(r.unlock, func(k keyed) bool { return k.shared }), []byte(r.w.a.channel))
	}
	var undo []keyed
	tried := func(keys, locked []keyed) func(error) error {
		return func(err error) error {
			for _, k := range keys {
				a := r.trying[k.key]
				if a.err = refusedForGood(r.w.a.schema, err); a.err == nil {
					a.err = unknown(err)
				}
			}
			undo = append(undo, locked...)
			return nil
		}
	}
	if len(r.try) > 0 {
		send(tryName, r.try, r.granted, tried(r.try, r.try))
	}
	if len(r.shared) > 0 {
		send("tryShared", r.shared, r.granted, tried(r.shared, r.shared))
	}
	if readers := r.readers(); len(readers) > 0 && r.w.a.opts.fenced {
		send("tokens", readers, r.drew, tried(readers, r.shared))
	}
	for _, q := range r.hash {
		p.SendQueryPrepared("hashtext", [][]byte{[]byte(q.claim.Name)}, nil, nil)
		p.SendPipelineSync()
		parts = append(parts, part{nil, func(row [][]byte) error {
			k, err := strconv.ParseInt(string(row[0]), 10, 64)
			q.answer(result{key: key{k: k}, err: err})
			return err
		}, func(err error) error { q.answer(result{err: unknown(err)}); return nil }})
	}
	if len(parts) == 0 && (r.ping || len(r.after) > 0) {
		p.SendQueryPrepared("ping", nil, nil, nil)
		p.SendPipelineSync()
		parts = append(parts, part{nil, func([][]byte) error { return nil }, doubt})
	}
	if len(parts) == 0 {
		return p.Close()
	}
	if err := p.Flush(); err != nil {
		_ = p.Close()
		return err
	}
	for _, x := range parts {
		if err := readPart(p, x.read, x.fail); err != nil {
			_ = p.Close()
			return err
		}
	}
	if err := p.Close(); err != nil {
		return err
	}
	return r.undo(ctx, undo)
}

// readPart reads one statement's answer, up to its end.
func readPart(p *pgconn.Pipeline, read func([][]byte) error, fail func(error) error) error {
	for {
		got, err := p.GetResults()
		if err == nil {
			switch x := got.(type) {
			case *pgconn.ResultReader:
				for x.NextRow() {
					if err := read(x.Values()); err != nil {
						return err
					}
				}
				_, err = x.Close()
			case *pgconn.PipelineSync:
				return nil
			case nil:
				return errors.New("the server's answer ends too early")
			}
		}
		var pe *pgconn.PgError
		switch {
		case err == nil:
		case !errors.As(err, &pe) || pe.Severity == "FATAL":
			return err
		default:
			if err := fail(err); err != nil {
				return err
			}
		}
	}
}

// granted reads what a try says of a key.
func (r *round) granted(row [][]byte) error {
	a, err := r.attempt(row)
	if err != nil {
		return err
	}
	a.ok = string(row[2]) == "t"
	a.fence, err = strconv.ParseInt(string(row[4]), 10, 64)
	return err
}

// drew reads the token of one reader.
func (r *round) drew(row [][]byte) error {
	a, err := r.attempt(row)
	if err != nil {
		return err
	}
	token, err1 := strconv.ParseInt(string(row[3]), 10, 64)
	fence, err2 := strconv.ParseInt(string(row[4]), 10, 64)
	a.tokens, a.fence = append(a.tokens, token), fence
	return errors.Join(err1, err2)
}

func (r *round) attempt(row [][]byte) (*attempt, error) {
	k, err := strconv.ParseInt(string(row[0]), 10, 64)
	if err != nil {
		return nil, err
	}
	a := r.trying[key{k: k, two: string(row[1]) == "t"}]
	if a == nil {
		return nil, fmt.Errorf("an answer about key %d, which was not asked for", k)
	}
	return a, nil
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

// undo gives back what a statement may have taken that then failed: PostgreSQL
// undoes everything of it but its advisory locks.
func (r *round) undo(ctx context.Context, keys []keyed) error {
	if len(keys) == 0 {
		return nil
	}
	rd := r.w.s.PgConn().ExecPrepared(ctx, "unlock", append(encodeKeys(keys), flags(keys, func(k keyed) bool { return k.shared }), []byte(r.w.a.channel)), nil, nil)
	return rd.Read().Err
}

func encodeKeys(keys []keyed) [][]byte {
	var b bytes.Buffer
	for i, k := range keys {
		b.WriteByte(",{"[boolIndex(i == 0)])
		b.WriteString(strconv.FormatInt(k.k, 10))
	}
	b.WriteByte('}')
	return [][]byte{b.Bytes(), flags(keys, func(k keyed) bool { return k.two })}
}

func flags(keys []keyed, of func(keyed) bool) []byte {
	var b bytes.Buffer
	for i, k := range keys {
		b.WriteByte(",{"[boolIndex(i == 0)])
		b.WriteByte("ft"[boolIndex(of(k))])
	}
	b.WriteByte('}')
	return b.Bytes()
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// asUnknown is err as an answer that says nothing for certain; nil stays nil.
func asUnknown(err error) error {
	if err == nil {
		return nil
	}
	return unknown(err)
}
