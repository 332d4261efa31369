package pglock

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dibslock/dibs/driver"
)

// maxCrowded is how many names a client remembers as contended.
const maxCrowded = 10_000

// crowded are the names that others wanted or had when this client met them last:
// there the usual shortcuts would fail.
type crowded struct {
	mu    sync.Mutex // guards names
	names map[string]bool
}

func (k *crowded) set(name string, yes bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !yes:
		delete(k.names, name)
	case len(k.names) >= maxCrowded:
		clear(k.names)
		fallthrough
	default:
		k.names[name] = true
	}
}

func (k *crowded) has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[name]
}

// A shortcut is an operation in one statement. It does nothing unless the name is
// what it usually is; then its answer is a yes.
type shortcut struct {
	sql  string
	args [][]byte
	// read reads the row that says that it was done, if its commit does not fail.
	read func(row [][]byte) error
	// then is what follows from it; nil: nothing.
	then func()
}

func (c *shortcut) done() {
	if c.then != nil {
		c.then()
	}
}

// An errand is a shortcut under way.
type errand struct {
	*exchange
	did bool
}

func (s *session) errand(c *shortcut) *errand {
	e := new(errand)
	e.exchange = s.begin(c.sql, c.args, func(row [][]byte) error {
		e.did = true
		return c.read(row)
	})
	return e
}

// serveSelf has the shortcuts of o tried on its caller's goroutine, if nothing else
// goes on with its name and a connection is free. It tells whether it has seen to o;
// its answer may come later.
func (d *desk) serveSelf(o *op) bool {
	b, w := d.takeSelf(o)
	if b == nil {
		return false
	}
	cuts := o.short()
	var e *errand
	for len(cuts) > 0 {
		c := &cuts[0]
		if e = w.session.errand(c); !e.hear(time.Now().Add(moment)) || e.err != nil {
			break
		}
		cuts = cuts[1:]
		if e.did {
			c.done()
			d.answer(b, 0, nil)
			d.putBack(w)
			return true
		}
		e = nil
	}
	d.hand(b)
	d.work.Go(func() { // ends when there is nothing to do
		if !w.shortcuts(b, cuts, e) {
			w.serve(b)
		}
		b.cancel()
		d.run(w)
	})
	d.work.Done() // of takeSelf
	return true
}

// tryShort does b, if it is one operation that has shortcuts, and tells whether it
// is answered.
func (w *writer) tryShort(b *batch) bool {
	if len(b.ops) != 1 || len(b.ops[0]) != 1 || b.ops[0][0].short == nil || w.connect(b.ctx) != nil {
		return false
	}
	o := b.ops[0][0]
	return w.desk.wants(o) && w.shortcuts(b, o.short(), nil)
}

// shortcuts tries what is left of an operation's shortcuts, the first of which may be
// under way already, and tells whether it is answered.
func (w *writer) shortcuts(b *batch, cuts []shortcut, e *errand) bool {
	o := b.ops[0][0]
	for _, c := range cuts {
		did, err := w.shortcut(b.ctx, &c, e)
		e = nil
		switch {
		case err != nil && untouched(err):
			return false
		case err != nil:
			err = w.judge(err)
			if w.session == nil && b.ctx.Err() == nil && !driver.Certain(err) {
				// The connection may have been dead before. The long way finds out, and what
				// may still be under way finds the name as it was.
				o.doubt = err
				return false
			}
			w.desk.answer(b, 0, err)
			return true
		case did:
			c.done()
			w.desk.answer(b, 0, nil)
			return true
		}
	}
	return false // it is not what it usually is, or a guard holds it: the long way tells
}

// shortcut does one, or what is left of it.
func (w *writer) shortcut(ctx context.Context, c *shortcut, e *errand) (did bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	if w.session.pooled {
		err = w.session.runText(ctx, w.s.sql.named(c.sql), c.args, func(row [][]byte) error {
			did = true
			return c.read(row)
		})
		return did, err
	}
	if e == nil {
		if err := w.session.learn(ctx, w.s.sql); err != nil {
			return false, err
		}
		e = w.session.errand(c)
	}
	for !e.hear(time.Now().Add(slice)) {
		if err := context.Cause(ctx); err != nil {
			w.session.drop() // the answer would be another's
			return false, err
		}
	}
	return e.did, e.err
}

// learn prepares the shortcuts' statements, once.
func (s *session) learn(ctx context.Context, sql statements) error {
	if s.learned {
		return nil
	}
	err := s.prepare(ctx, sql, []string{"takeFree", "giveBack", "handOn"})
	s.learned = err == nil
	return err
}

// runText is run behind a pooler, with arguments and answers in text.
func (s *session) runText(ctx context.Context, sql string, args [][]byte, read func(row [][]byte) error) error {
	b := new(pgconn.Batch)
	b.ExecParams("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", nil, nil, nil, nil)
	b.ExecParams(s.local, nil, nil, nil, nil)
	b.ExecParams(sql, args, nil, nil, nil)
	b.ExecParams("COMMIT", nil, nil, nil, nil)
	rs := s.PgConn().ExecBatch(ctx, b)
	var failed error
	for i := 0; rs.NextResult(); i++ {
		r := rs.ResultReader()
		for r.NextRow() {
			if i == 2 && failed == nil {
				failed = read(r.Values())
			}
		}
		if _, err := r.Close(); failed == nil {
			failed = err
		}
	}
	if err := rs.Close(); failed == nil {
		failed = err
	}
	return s.rolledBack(failed)
}

// takeFree grants c if the name is free.
func (t *Table) takeFree(c driver.Claim, g *driver.Grant) []shortcut {
	if c.From != "" || t.crowded.has(c.Name) {
		return nil
	}
	mode := c.Mode()
	return []shortcut{{
		sql: "takeFree",
		args: [][]byte{
			[]byte(c.Name), truth(mode == driver.Shared), truth(mode == driver.Exclusive), bytea(c.ID), number(int64(c.Units)), number(int64(c.Capacity)),
			number(micros(c.TTL)), number(micros(c.Keep)), number(micros(c.Delay)), []byte(strings.ReplaceAll(c.Note, "\x00", "\uFFFD")),
		},
		read: func(row [][]byte) error {
			token, err1 := strconv.ParseUint(string(row[0]), 10, 64)
			fence, err2 := strconv.ParseUint(string(row[1]), 10, 64)
			*g = driver.Grant{Token: token, Fence: fence, TTL: c.TTL, TookOver: string(row[2]) == "t"}
			return errors.Join(err1, err2)
		},
	}}
}

// handOn releases c if it is the only claim and is not to be kept, and gives the name
// to the first in line, if that wants it for itself.
func (t *Table) handOn(c driver.Claim) []shortcut {
	if c.Token == 0 || c.Keep > 0 {
		return nil
	}
	own := [][]byte{[]byte(c.Name), bytea(c.ID), number(int64(c.Token))}
	give := shortcut{
		sql:  "giveBack",
		args: own,
		read: func([][]byte) error { return nil },
		then: func() { t.crowded.set(c.Name, false) },
	}
	var x news
	var next digest
	hand := shortcut{
		sql:  "handOn",
		args: append(own, []byte(t.channel), number(micros(handOver))),
		read: func(row [][]byte) (err error) {
			x, next, err = decodeNews(string(row[0]))
			return err
		},
		then: func() {
			t.crowded.set(c.Name, true)
			t.subs.tell(next, x)
		},
	}
	if t.crowded.has(c.Name) {
		return []shortcut{hand, give}
	}
	return []shortcut{give, hand}
}

func number(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func truth(yes bool) []byte { return []byte{"ft"[boolIndex(yes)]} }

func bytea(s string) []byte { return hex.AppendEncode([]byte(`\x`), []byte(s)) }
