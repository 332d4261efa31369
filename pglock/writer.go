package pglock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dibslock/dibs/driver"
)

// maxRounds is how often a step is worked out anew because another client was
// faster, before its outcome is given up as unknown.
const maxRounds = 100

// A writer reads names, works out steps and writes them, on a connection of its
// own. One goroutine uses it.
type writer struct {
	s       *Table
	desk    *desk
	session *session // nil: not connected
	mute    bool     // nobody can be told at present: see untold
}

// errBusy: other clients were faster, again and again.
var errBusy = errors.New("the name is too busy: other clients were faster every time")

// serve answers the operations of b.
func (w *writer) serve(b *batch) {
	open := make([]int, len(b.queues)) // those of b that have no answer yet
	for i := range open {
		open[i] = i
	}
	open = w.renew(b, open)
	guarded := make(map[string]map[int64]bool)
	w.mute = false
	alone := false // one statement for each name, after one of them spoiled another's
	for round := 0; len(open) > 0; round++ {
		if round > 2 {
			pause(b.ctx, time.Duration(rand.IntN(min(round, 20)))*time.Millisecond)
		}
		if round == maxRounds {
			w.fail(b, open, unknown(errBusy))
			return
		}
		part := open
		if alone {
			part = open[:1]
		}
		names, err := w.read(b, part)
		if err != nil {
			w.fail(b, open, err)
			return
		}
		steps := w.work(b, part, names, guarded)
		written, err := w.write(b.ctx, steps, guarded, false)
		switch {
		case err == nil:
		case len(steps) > 1 && untouched(err):
			alone = true
		case contended(err):
		case w.untold(steps, err):
			w.mute = true
		default:
			err = w.judge(err)
			w.fail(b, part, err)
			open = open[len(part):]
			if w.session == nil {
				w.fail(b, open, err)
				return
			}
			continue
		}
		open = w.answer(b, open, part, names, written)
	}
}

// answer gives the operations of part their answers whose steps were written, or
// had nothing to write, and returns what is left of open.
func (w *writer) answer(b *batch, open, part []int, names map[string]*name, written map[string]bool) []int {
	var rest []int
	for _, i := range part {
		n := names[b.queues[i].name]
		if n.dirty() && !written[n.key] {
			rest = append(rest, i)
			continue
		}
		w.s.tellLocal(n)
		w.s.crowded.set(n.key, len(n.rows) > 1 || len(n.rows) == 1 && w.refused(b, i))
		w.desk.answer(b, i, nil)
	}
	return append(rest, open[len(part):]...)
}

// refused tells whether an operation on b's i-th name was refused: who is there is
// another.
func (w *writer) refused(b *batch, i int) bool {
	for _, o := range b.ops[i] {
		if errors.Is(o.err, driver.ErrHeld) {
			return true
		}
	}
	return false
}

func (w *writer) fail(b *batch, open []int, err error) {
	for _, i := range open {
		w.desk.answer(b, i, err)
	}
}

// work has the operations on names work out their steps, and returns those that
// have something to write.
func (w *writer) work(b *batch, part []int, names map[string]*name, guarded map[string]map[int64]bool) []*name {
	var steps []*name
	for _, i := range part {
		n := names[b.queues[i].name]
		n.guarded = guarded[n.key]
		n.journal = w.s.opts.Journal
		for _, o := range b.ops[i] {
			if w.desk.wants(o) {
				o.err = o.run(n)
			}
			if o.doubt != nil && errors.Is(o.err, driver.ErrNotHeld) {
				o.err = o.doubt // it may have been given back by this very call
			}
		}
		if n.dirty() {
			steps = append(steps, n)
		}
	}
	return steps
}

// read returns the state of the names of part. Reading has no effect, so that a
// connection that has died unnoticed costs nobody an answer.
func (w *writer) read(b *batch, part []int) (names map[string]*name, err error) {
	keys := make([]string, len(part))
	for i, k := range part {
		keys[i] = b.queues[k].name
	}
	for try := 0; ; try++ {
		if err := w.connect(b.ctx); err != nil {
			return nil, err
		}
		names, err = w.load(b.ctx, keys)
		if err == nil {
			return names, nil
		}
		if contended(err) && try < maxRounds {
			continue
		}
		if err = w.judge(err); w.session != nil || try > 0 || b.ctx.Err() != nil {
			return nil, err
		}
	}
}

func (w *writer) load(ctx context.Context, keys []string) (map[string]*name, error) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	names := make(map[string]*name, len(keys))
	err := w.session.run(ctx, w.s.sql.named("read"), []any{keys}, func(rows pgx.Rows) error { return scan(rows, names) })
	if err == nil && len(names) < len(keys) {
		// The table meta is empty.
		err = driver.Rejectedf("", "postgres: the schema %s has no version: it is not a whole dibs store", w.s.schema)
	}
	return names, err
}

// scan reads a row of the statement read.
func scan(rows pgx.Rows, names map[string]*name) error {
	var (
		key                                                                string
		mark, now                                                          int64
		version, last, readers                                             *int64
		tookOver, lone                                                     *bool
		seq, token, fence, since, until, ttl, patience, keep, heard, delay *int64
		state                                                              *int16
		units, capacity                                                    *int32
		died, took                                                         *bool
		id, origin                                                         []byte
		note                                                               *string
	)
	err := rows.Scan(&key, &mark, &now, &version, &last, &readers, &tookOver, &lone,
		&seq, &state, &id, &token, &fence, &units, &capacity, &since, &until, &ttl, &patience, &keep,
		&heard, &delay, &died, &took, &origin, &note)
	if err != nil {
		return err
	}
	n := names[key]
	if n == nil {
		n = &name{key: key, mark: mark, last: mark, now: now}
		if version != nil {
			n.version, n.last, n.readers, n.tookOver = *version, *last, *readers, *tookOver
		}
		names[key] = n
	}
	if seq != nil {
		n.rows = append(n.rows, &row{
			Name: key, Seq: *seq, State: uint8(*state), ID: id, Token: *token, Fence: *fence, Units: int(*units), Capacity: int(*capacity),
			Since: *since, Until: *until, TTL: *ttl, Patience: *patience, Keep: *keep, Heard: *heard, Delay: *delay,
			Died: *died, TookOver: *took, Origin: origin, Note: *note, lone: *lone,
		})
	}
	return nil
}

// connect makes sure that there is a session.
func (w *writer) connect(ctx context.Context) error {
	if w.session != nil {
		return nil
	}
	s, err := w.s.borrow(ctx)
	if err != nil {
		if err := refusedForGood(w.s.schema, err); err != nil {
			return err
		}
		return unknown(err)
	}
	w.session = s
	return nil
}

// ready tells whether shortcuts can be used at once.
func (w *writer) ready() bool {
	return w.session != nil && !w.session.pooled && w.session.learned
}

// judge says what err, of a statement, means for its callers, and lets go of a
// session that is of no use any more.
func (w *writer) judge(err error) error {
	s := w.session
	if s.IsClosed() || code(err) == codeReadOnly || errors.Is(err, errStandby) {
		s.drop()
		w.session = nil
	}
	var pe *pgconn.PgError
	var re *driver.RejectedError
	switch {
	case errors.As(err, &re):
		return err
	case errors.As(err, &pe):
		if err := refusedForGood(w.s.schema, err); err != nil {
			return err
		}
	}
	return unknown(err)
}

// contended tells whether the statement was certainly not applied and is worth
// another round at once.
func contended(err error) bool {
	switch code(err) {
	case codeSerialization, codeDeadlock, codeDivision:
		return true
	}
	return false
}

// untouched tells whether the statement was certainly not applied because of what
// may have been only one of its names, or the telling.
func untouched(err error) bool {
	return contended(err) || code(err) == codeLockTimeout || code(err) == codeLimit
}

// untold tells whether steps were not written perhaps for want of telling: a commit
// that notifies waits for every other one that does, in whatever database, and their
// queue may be full. They are worked out anew and told to nobody, and who waits polls.
func (w *writer) untold(steps []*name, err error) bool {
	return !w.mute && untouched(err) && slices.ContainsFunc(steps, func(n *name) bool { return len(n.news) > 0 })
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// write writes steps, each whole or not at all; with all, all or none. It notes in
// guarded which rows could not be removed.
func (w *writer) write(ctx context.Context, steps []*name, guarded map[string]map[int64]bool, all bool) (written map[string]bool, err error) {
	if len(steps) == 0 {
		return nil, nil
	}
	var (
		heads  []stepRow
		drops  = []dropRow{}
		puts   = []*row{}
		told   = []newsRow{}
		events = []event{}
	)
	for _, n := range steps {
		lone := n.lone()
		heads = append(heads, n.step(lone))
		for _, r := range n.gone {
			drops = append(drops, dropRow{n.key, r.Seq, r.Fence, r.lone})
		}
		for _, r := range n.rows {
			switch {
			case r != lone && (r.fresh || r.changed):
				puts = append(puts, r)
			case r == lone && !r.lone && !r.fresh:
				drops = append(drops, dropRow{n.key, r.Seq, 0, false}) // it moves
			}
		}
		for _, x := range n.news {
			if !w.mute && !w.s.subs.waits(digestOf(string(x.id))) { // else it is told without a detour
				told = append(told, newsRow{n.key, x.encode()})
			}
		}
		for _, e := range n.events {
			e.Nr = len(events)
			events = append(events, e)
		}
	}
	sql, args := "write", []any{encode(heads), encode(drops), encode(puts), encode(told), w.s.channel, encode(events), all}
	if n := steps[0]; len(steps) == 1 && n.version > 0 && len(told)+len(events)+len(drops) == 0 && len(puts) == 1 && n.onlyWaits(puts[0]) {
		sql = "writeOne"
		args = append([]any{n.key, n.version, n.last, int32(heads[0].Others), heads[0].Plain, n.now}, puts[0].values()...)
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	written = make(map[string]bool)
	err = w.session.run(ctx, w.s.sql.named(sql), args, func(rows pgx.Rows) error {
		var name string
		var seq int64
		if err := rows.Scan(&name, &seq); err != nil {
			return err
		}
		if seq == 0 {
			written[name] = true
			return nil
		}
		if guarded[name] == nil {
			guarded[name] = make(map[int64]bool)
		}
		guarded[name][seq] = true
		return nil
	})
	if err != nil {
		return nil, err // also if rows came before it: it may be the commit that failed
	}
	return written, nil
}
