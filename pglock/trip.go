package pglock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// A trip is what a round says to the server, and hears, in one round trip.
type trip struct {
	r     *round
	p     *pgconn.Pipeline
	parts []part
	first []keyed // the key, if it was never locked before, whose fence has to be made
	undo  []keyed // what statements that failed may have taken
}

// A part is one statement of a trip.
type part struct {
	read func(row [][]byte) error
	fail func(err error) error // nil: its failure is the session's
}

// ask is the round trip. Its error is that of the connection, or of a session that
// is not to be relied on; what only one statement failed with is the attempts'.
func (r *round) ask() error {
	ctx := r.w.a.life
	r.w.watch.begin(r.w.s.raw, r.w.limit())
	defer r.w.watch.end()
	t := &trip{r: r, p: r.w.s.PgConn().StartPipeline(ctx)}
	t.unlock(r.unlock)
	t.try(r.try)
	if len(r.shared) > 0 {
		t.send(part{r.granted, t.tried(r.shared, r.shared)}, "tryShared", encodeKeys(r.shared)...)
	}
	if readers := r.readers(); len(readers) > 0 && r.w.a.opts.fenced {
		t.send(part{r.drew, t.tried(readers, r.shared)}, "tokens", encodeKeys(readers)...)
	}
	for _, q := range r.hash {
		t.hash(q)
	}
	if len(t.parts) == 0 && (r.ping || len(r.after) > 0) {
		t.send(part{read: func([][]byte) error { return nil }}, "ping")
	}
	if err := t.hear(); err != nil {
		_ = t.p.Close()
		return err
	}
	if err := t.p.Close(); err != nil {
		return err
	}
	if err := t.firstFence(ctx); err != nil {
		return err
	}
	return r.giveBack(ctx, t.undo)
}

// send adds a statement, which is a transaction of its own.
func (t *trip) send(p part, name string, args ...[]byte) {
	t.p.SendQueryPrepared(name, args, nil, nil)
	t.p.SendPipelineSync()
	t.parts = append(t.parts, p)
}

func (t *trip) unlock(keys []keyed) {
	channel := []byte(t.r.w.a.channel)
	switch {
	case len(keys) == 0:
	case len(keys) == 1 && !keys[0].two && !keys[0].shared:
		t.send(part{read: unlocked(0)}, "unlockOne", keys[0].text(), channel, []byte(keys[0].told()))
	default:
		t.send(part{read: unlocked(2)}, "unlock", unlockArgs(keys, channel)...)
	}
}

// unlocked reads in a column whether a lock was given back.
func unlocked(column int) func(row [][]byte) error {
	return func(row [][]byte) error {
		if string(row[column]) != "t" {
			return errDoubt
		}
		return nil
	}
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
		t.send(part{read, t.tried(keys, keys)}, name, keys[0].text())
	default:
		name := "try"
		if fenced {
			name = "tryFenced"
		}
		t.send(part{t.r.granted, t.tried(keys, keys)}, name, encodeKeys(keys)...)
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

func (t *trip) hash(q *request) {
	t.send(part{func(row [][]byte) error {
		k, err := strconv.ParseInt(string(row[0]), 10, 64)
		q.answer(result{key: key{k: k}, err: err})
		return err
	}, func(err error) error {
		q.answer(result{err: unknown(err)})
		return nil
	}}, "hashtext", []byte(q.claim.Name))
}

// hear sends what was added and reads the answers.
func (t *trip) hear() error {
	if len(t.parts) == 0 {
		return nil
	}
	if err := t.p.Flush(); err != nil {
		return err
	}
	for _, x := range t.parts {
		if err := x.hear(t.p); err != nil {
			return err
		}
	}
	return nil
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
		var pe *pgconn.PgError
		switch {
		case err == nil:
		case !errors.As(err, &pe) || pe.Severity == "FATAL" || x.fail == nil:
			return err
		default:
			if err := x.fail(err); err != nil {
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

// giveBack gives back what a statement may have taken that then failed: PostgreSQL
// undoes everything of it but its advisory locks.
func (r *round) giveBack(ctx context.Context, keys []keyed) error {
	if len(keys) == 0 {
		return nil
	}
	return r.w.s.PgConn().ExecPrepared(ctx, "unlock", unlockArgs(keys, []byte(r.w.a.channel)), nil, nil).Read().Err
}

func unlockArgs(keys []keyed, channel []byte) [][]byte {
	return append(encodeKeys(keys), flags(keys, func(k keyed) bool { return k.shared }), channel)
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
