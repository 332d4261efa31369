package pglock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A trip is what a round says to the server, and hears, in one round trip.
type trip struct {
	r     *round
	parts []part
	sent  *exchange // of a trip of one part, once it has begun
	first []keyed   // the key, if it was never locked before, whose fence has to be made
	undo  []keyed   // what statements that failed may have taken
}

// A part is one statement of a trip.
type part struct {
	name string
	args [][]byte
	read func(row [][]byte) error
	fail func(err error) error // nil: its failure is the session's
}

// pack makes the trip.
func (r *round) pack() {
	t := &r.trip
	t.r = r
	t.unlock(r.unlock)
	t.try(r.try)
	if len(r.shared) > 0 {
		t.add("tryShared", encodeKeys(r.shared), r.granted, t.tried(r.shared, r.shared))
	}
	if readers := r.readers(); len(readers) > 0 && r.w.a.opts.fenced {
		t.add("tokens", encodeKeys(readers), r.drew, t.tried(readers, r.shared))
	}
	for _, q := range r.hash {
		t.hash(q)
	}
	for _, q := range r.query {
		t.query(q)
	}
	if r.see {
		t.see(!r.w.seen)
	}
	if len(t.parts) == 0 && (r.ping || len(r.after) > 0) {
		t.add("ping", nil, func([][]byte) error { return nil }, nil)
	}
}

// add adds a statement, which is a transaction of its own.
func (t *trip) add(name string, args [][]byte, read func(row [][]byte) error, fail func(err error) error) {
	t.parts = append(t.parts, part{name, args, read, fail})
}

// ask is the round trip, or what is left of it. Its error is that of the connection,
// or of a session that is not to be relied on; what only one statement failed with
// is the attempts'.
func (t *trip) ask() error {
	ctx, w := t.r.w.a.life, t.r.w
	var err error
	switch len(t.parts) {
	case 0:
	case 1:
		if t.sent == nil {
			t.begin()
		}
		err = w.await(t.sent)
		if err == nil {
			err = t.parts[0].judge(t.sent.err)
		}
	default:
		w.watch.begin(w.s.raw, w.limit())
		defer w.watch.end()
		err = t.pipeline(ctx)
	}
	if err != nil {
		return err
	}
	if err := t.firstFence(ctx); err != nil {
		return err
	}
	return t.r.giveBack(ctx, t.undo)
}

// begin sends a trip of one part.
func (t *trip) begin() {
	x := t.parts[0]
	t.sent = t.r.w.s.begin(x.name, x.args, x.read)
}

// quick is a trip of one part, or none, that is over within a moment. If it is not,
// or there is more to be done than to hand out its answers, ask does the rest.
func (t *trip) quick() bool {
	if len(t.parts) == 0 {
		return true
	}
	if len(t.parts) > 1 {
		return false
	}
	t.begin()
	return t.sent.hear(time.Now().Add(moment)) && t.sent.err == nil && len(t.first) == 0
}

// pipeline sends the parts, and hears the answers.
func (t *trip) pipeline(ctx context.Context) error {
	p := t.r.w.s.PgConn().StartPipeline(ctx)
	for _, x := range t.parts {
		p.SendQueryPrepared(x.name, x.args, nil, nil)
		p.SendPipelineSync()
	}
	err := p.Flush()
	for i := 0; i < len(t.parts) && err == nil; i++ {
		err = t.parts[i].hear(p)
	}
	return errors.Join(err, p.Close())
}

// unlock gives keys back, and then tells who waits for them. Only the telling can
// fail: a commit that notifies waits for every other that does, in whatever database,
// and not for ever. Nothing brings a lock back that was given back, and who waits asks
// again by itself.
func (t *trip) unlock(keys []keyed) {
	if len(keys) == 0 {
		return
	}
	channel := []byte(t.r.w.a.channel)
	name, args, column := "unlock", t.r.w.a.unlockArgs(keys), 2
	if len(keys) == 1 && !keys[0].two && !keys[0].shared {
		name, args, column = "unlockOne", [][]byte{keys[0].text(), channel, []byte(keys[0].told()), t.r.w.a.flag}, 0
	}
	back := 0
	t.add(name, args, func(row [][]byte) error {
		if string(row[column]) != "t" {
			return errDoubt
		}
		back++
		return nil
	}, func(err error) error {
		if back < len(keys) {
			return err
		}
		return nil
	})
}

func (t *trip) try(keys []keyed) {
	fenced := t.r.w.a.opts.fenced
	switch {
	case len(keys) == 0:
	case len(keys) == 1 && !keys[0].two:
		a, name := t.r.trying[keys[0].key], "tryOne"
		if fenced {
			name = "tryFencedOne"
		}
		read := func(row [][]byte) (err error) {
			a.ok = string(row[0]) == "t"
			switch {
			case !a.ok || !fenced:
			case row[1] == nil:
				t.first = keys
			default:
				a.fence, err = strconv.ParseInt(string(row[1]), 10, 64)
			}
			return err
		}
		t.add(name, [][]byte{keys[0].text()}, read, t.tried(keys, keys))
	default:
		name := "try"
		if fenced {
			name = "tryFenced"
		}
		t.add(name, encodeKeys(keys), t.r.granted, t.tried(keys, keys))
	}
}

// firstFence makes the fence of a key that was never locked before.
func (t *trip) firstFence(ctx context.Context) error {
	if len(t.first) == 0 {
		return nil
	}
	a := t.r.trying[t.first[0].key]
	res := t.r.w.s.PgConn().ExecPrepared(ctx, "firstFence", [][]byte{t.first[0].text()}, nil, nil).Read()
	var pe *pgconn.PgError
	switch {
	case errors.As(res.Err, &pe) && pe.Severity != "FATAL":
		return t.tried(t.first, t.first)(res.Err)
	case res.Err != nil:
		return res.Err
	}
	var err error
	a.fence, err = strconv.ParseInt(string(res.Rows[0][0]), 10, 64)
	return err
}

// tried notes the failure of a statement as that of the attempts for keys, of which
// it may have taken those that are locked.
func (t *trip) tried(keys, locked []keyed) func(error) error {
	return func(err error) error {
		for _, k := range keys {
			a := t.r.trying[k.key]
			if a.err = refusedForGood(t.r.w.a.schema, err); a.err == nil {
				a.err = unknown(err)
			}
		}
		t.undo = append(t.undo, locked...)
		return nil
	}
}

// see shows others that somebody waits here, or not any more.
func (t *trip) see(yes bool) {
	name := "see"
	if !yes {
		name = "unsee"
	}
	t.add(name, [][]byte{t.r.w.a.flag}, func([][]byte) error {
		t.r.w.seen = yes
		return nil
	}, func(err error) error {
		t.r.unseen = err
		return nil
	})
}

func (t *trip) hash(q *request) {
	t.add("hashtext", [][]byte{[]byte(q.claim.Name)}, func(row [][]byte) error {
		k, err := strconv.ParseInt(string(row[0]), 10, 64)
		q.answer(result{key: key{k: k}, err: err})
		return err
	}, func(err error) error {
		q.answer(result{err: unknown(err)})
		return nil
	})
}

// query runs any of the prepared statements, and answers its first row.
func (t *trip) query(q *request) {
	args := make([][]byte, len(q.args))
	for i, arg := range q.args {
		args[i] = []byte(arg)
	}
	var res result // no row, if none comes
	t.add(q.name, args, func(row [][]byte) error {
		res.row = make([]string, len(row))
		for i, cell := range row {
			res.row[i] = string(cell)
		}
		return nil
	}, func(err error) error {
		res.err = unknown(err)
		return nil
	})
	t.r.after = append(t.r.after, func(err error) { // not before: a commit may fail
		if err != nil {
			res = result{err: unknown(err)}
		}
		q.answer(res)
	})
}

// hear reads one statement's answer, up to its end.
func (x part) hear(p *pgconn.Pipeline) error {
	for {
		got, err := p.GetResults()
		if err == nil {
			switch got := got.(type) {
			case *pgconn.ResultReader:
				for got.NextRow() {
					if err := x.read(got.Values()); err != nil {
						return err
					}
				}
				_, err = got.Close()
			case *pgconn.PipelineSync:
				return nil
			case nil:
				return errors.New("the server's answer ends too early")
			}
		}
		if err := x.judge(err); err != nil {
			return err
		}
	}
}

// judge tells what the failure of one statement is to the session.
func (x part) judge(err error) error {
	var pe *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &pe) || pe.Severity == "FATAL" || x.fail == nil:
		return err
	}
	return x.fail(err)
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

// giveBack gives back what a statement may have taken that then failed: PostgreSQL
// undoes everything of it but its advisory locks.
func (r *round) giveBack(ctx context.Context, keys []keyed) error {
	if len(keys) == 0 {
		return nil
	}
	for _, k := range keys {
		defer r.w.a.tell(k.key)
	}
	res := r.w.s.PgConn().ExecPrepared(ctx, "unlock", r.w.a.unlockArgs(keys), nil, nil).Read()
	var pe *pgconn.PgError
	if errors.As(res.Err, &pe) && pe.Severity != "FATAL" && len(res.Rows) == len(keys) {
		return nil // it is the telling that failed: see unlock
	}
	return res.Err
}

func (a *Advisory) unlockArgs(keys []keyed) [][]byte {
	return append(encodeKeys(keys), flags(keys, func(k keyed) bool { return k.shared }), []byte(a.channel), a.flag)
}

func (k keyed) text() []byte { return strconv.AppendInt(nil, k.k, 10) }

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
