package pglock

import (
	"context"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// maxMemories is how many names a client remembers.
const maxMemories = 10_000

// memories are what this client knows of names: what it has written itself, or read.
// Another client may have changed them since; the version tells.
type memories struct {
	mu  sync.Mutex // guards all
	all map[string]*memory
}

// A memory is what was known of a name that is free and not waited for: the usual
// case of a lock that nobody contends for.
type memory struct {
	version  int64
	tookOver bool
}

// A shortcut is an operation in one statement. It does nothing unless the name is
// still what it was remembered to be; then its answer is a yes.
type shortcut struct {
	sql  string
	args []any
	// read reads the row that says that it was done, and returns what is to be
	// remembered of the name, or nil.
	read func(rows pgx.Rows) (*memory, error)
}

func newMemories() *memories { return &memories{all: make(map[string]*memory)} }

// note remembers n as it was read, or as it was written.
func (k *memories) note(n *name, written bool) {
	version := n.version
	switch {
	case written && version == 0:
		version = n.mark + 1
	case written:
		version++
	}
	var m *memory
	if version > 0 && len(n.rows) == 0 {
		m = &memory{version, n.tookOver}
	}
	k.set(n.key, m)
}

func (k *memories) set(key string, m *memory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m == nil {
		delete(k.all, key)
		return
	}
	if len(k.all) >= maxMemories {
		clear(k.all)
	}
	k.all[key] = m
}

func (k *memories) get(key string) *memory {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

// tryShort does b, if it is one operation that has a shortcut, and tells whether it
// is answered.
func (w *writer) tryShort(b *batch) bool {
	if len(b.ops) != 1 || len(b.ops[0]) != 1 || w.s.opts.Journal || w.session == nil {
		return false
	}
	o := b.ops[0][0]
	if o.short == nil {
		return false
	}
	cut := o.short(w.s.known.get(o.name))
	if cut == nil || !w.desk.wants(o) {
		return false
	}
	w.s.known.set(o.name, nil) // unless it is done
	ctx, cancel := context.WithTimeout(b.ctx, callWait)
	defer cancel()
	var now *memory
	did := false
	err := w.session.run(ctx, w.s.sql.named(cut.sql), cut.args, func(rows pgx.Rows) (err error) {
		did = true
		now, err = cut.read(rows)
		return err
	})
	switch {
	case err != nil && untouched(err):
		return false
	case err != nil:
		err = w.judge(err)
		if w.session == nil && b.ctx.Err() == nil && !driver.Certain(err) {
			// The connection may have been dead before. The long way finds out, and what
			// may still be under way finds another version.
			o.doubt = err
			return false
		}
		w.desk.answer(b, 0, err)
		return true
	case !did:
		return false // it is not what it was, or a guard holds it: the long way tells
	}
	w.s.known.set(o.name, now)
	w.desk.answer(b, 0, nil)
	return true
}

// take grants c if the name is free.
func (m *memory) take(c driver.Claim, g *driver.Grant) *shortcut {
	if m == nil || c.From != "" {
		return nil
	}
	mode := c.Mode()
	note := strings.ReplaceAll(c.Note, "\x00", "\uFFFD")
	return &shortcut{
		sql: "takeFree",
		args: []any{
			c.Name, m.version, mode == driver.Shared, mode == driver.Exclusive, []byte(c.ID), int32(c.Units), int32(c.Capacity),
			micros(c.TTL), micros(c.Patience), micros(c.Keep), micros(c.Delay), m.tookOver, note,
		},
		read: func(rows pgx.Rows) (*memory, error) {
			var token int64
			if err := rows.Scan(&token); err != nil {
				return nil, err
			}
			*g = driver.Grant{Token: uint64(token), TTL: c.TTL, TookOver: m.tookOver}
			if mode != driver.Counted {
				g.Fence = g.Token
			}
			return nil, nil
		},
	}
}

// handOn releases c if it is the only claim and is not to be kept, and gives the name
// to the first in line, if that wants it for itself: whoever holds a name exclusively
// needs no memory of it.
func (t *Table) handOn(c driver.Claim) *shortcut {
	if c.Token == 0 || c.Keep > 0 {
		return nil
	}
	return &shortcut{
		sql:  "handOn",
		args: []any{c.Name, []byte(c.ID), int64(c.Token), t.channel, micros(handOver)},
		read: func(rows pgx.Rows) (*memory, error) {
			m := new(memory)
			x := news{kind: newsHanded}
			var place, token, ttl, until *int64
			var took *bool
			if err := rows.Scan(&m.version, &m.tookOver, &x.id, &place, &token, &ttl, &until, &took); err != nil || place == nil {
				return m, err
			}
			x.place, x.until = *place, *until
			x.grant = driver.Grant{Token: uint64(*token), Fence: uint64(*token), TTL: span(*ttl), TookOver: *took}
			t.subs.tell(digestOf(string(x.id)), x)
			return nil, nil
		},
	}
}
