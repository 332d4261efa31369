package sqlitelock

import (
	sqldriver "database/sql/driver"
	"errors"
	"time"
)

const (
	// maxNames is how many names a view keeps: enough for those that are busy.
	maxNames = 512
	// maxRows is how many rows it keeps: enough for a few long lines.
	maxRows = 20_000
)

// A view is what one connection knows of the file. What it has read stays true
// until another connection commits, which SQLite's data version tells at the
// begin of a transaction; so a step on a name that nobody else touched reads
// nothing.
type view struct {
	c       *conn
	version uint32
	meta    *meta // nil: not read
	names   map[string]*name
	rows    int // of names, about
}

// meta is the row of the table meta.
type meta struct {
	mark                       int64 // as written: an upper bound of what was drawn
	base, anchor, domain, high int64

	last    int64 // the number drawn last
	ahead   int64 // how many numbers to reserve next
	drawn   bool  // mark has changed
	changed bool  // anything else has
}

// maxAhead is how many numbers are reserved at most.
const maxAhead = 64

// draw returns a number larger than all that were ever drawn. A view that draws
// again and again, while no other connection commits, reserves more and more at
// once, which saves the write of the mark. Another connection begins behind the
// mark, and this one then reads it anew, so that the numbers grow for all.
func (m *meta) draw() int64 {
	m.last++
	if m.last > m.mark {
		m.mark = m.last + m.ahead
		m.ahead = min(2*m.ahead+1, maxAhead)
		m.drawn = true
	}
	return m.last
}

var errNoMeta = errors.New("the table meta has no row")

// begin starts a transaction, with the write lock or, for stmt beginRead, with a
// snapshot for reading.
func (v *view) begin(stmt string) error {
	if err := v.c.run(stmt); err != nil {
		return err
	}
	if stmt == "beginRead" { // SQLite takes the snapshot with the first read
		m, err := v.readMeta()
		if err != nil {
			return err
		}
		defer func() { v.meta = m }()
	}
	version, err := v.c.raw.FileControlDataVersion("main")
	if err != nil {
		return err
	}
	if version != v.version {
		v.forget()
		v.version = version
	}
	v.trim()
	return nil
}

// trim forgets some names, if there are too many.
func (v *view) trim() {
	if len(v.names) <= maxNames && v.rows <= maxRows {
		return
	}
	for key, n := range v.names {
		if len(v.names) <= maxNames/2 && v.rows <= maxRows/2 {
			return
		}
		v.rows -= len(n.rows)
		delete(v.names, key)
	}
}

// commit ends the transaction. On an error the caller rolls back.
func (v *view) commit() error {
	if err := v.c.run("commit"); err != nil {
		return err
	}
	version, err := v.c.raw.FileControlDataVersion("main")
	if err != nil {
		v.forget() // committed all the same
		version = 0
	}
	v.version = version
	return nil
}

// rollback undoes the transaction, if there still is one, and forgets what was
// made of it.
func (v *view) rollback() {
	v.forget()
	// SQLite has rolled back by itself after some errors; then this one fails.
	_ = v.c.run("rollback")
}

func (v *view) forget() {
	v.meta, v.rows = nil, 0
	if len(v.names) > 0 || v.names == nil {
		v.names = make(map[string]*name)
	}
}

// load returns the state of the name called key.
func (v *view) load(key string) (*name, error) {
	if n := v.names[key]; n != nil {
		return n, nil
	}
	n := &name{key: key}
	err := v.c.each("load", func(row []sqldriver.Value) bool {
		n.rows = append(n.rows, scanRow(row))
		return true
	}, key)
	if err != nil {
		return nil, err
	}
	v.names[key] = n
	v.rows += len(n.rows)
	return n, nil
}

// known returns the row of meta.
func (v *view) known() (*meta, error) {
	if v.meta == nil {
		m, err := v.readMeta()
		if err != nil {
			return nil, err
		}
		v.meta = m
	}
	return v.meta, nil
}

func (v *view) readMeta() (*meta, error) {
	var m *meta
	err := v.c.each("meta", func(row []sqldriver.Value) bool {
		n := func(i int) int64 { x, _ := row[i].(int64); return x }
		m = &meta{mark: n(0), base: n(1), anchor: n(2), domain: n(3), high: n(4), last: n(0)}
		return true
	})
	if err == nil && m == nil {
		err = errNoMeta
	}
	return m, err
}

// time is the record clock at now: it runs with the boot clock, is set by the wall
// clock once in each clock domain, and never goes back.
func (m *meta) time(now int64, c *clock) time.Time {
	if m.domain != c.domain {
		return time.Unix(0, max(m.high, c.wall().UnixNano()))
	}
	return time.Unix(0, max(m.high, m.base+now-m.anchor))
}

// tick writes the record clock down, and returns it.
func (m *meta) tick(now int64, c *clock) time.Time {
	t := m.time(now, c)
	if m.domain != c.domain {
		m.base, m.anchor, m.domain = t.UnixNano(), now, c.domain
	}
	m.high, m.changed = t.UnixNano(), true
	return t
}

// keepTime writes the record clock down, so that it does not go back to before now
// after a reboot.
func (t *tx) keepTime() error {
	m, err := t.v.known()
	if err != nil {
		t.err = err
		return err
	}
	m.tick(t.now, t.s.clock)
	return nil
}

// save writes what the step has made of n.
func (v *view) save(n *name) error {
	for _, r := range n.gone {
		if err := v.c.run("drop", n.key, r.seq); err != nil {
			return err
		}
	}
	v.rows -= len(n.gone)
	n.gone = nil
	for _, r := range n.rows {
		var err error
		switch r.change {
		case same:
		case extended:
			err = v.c.run("extend", n.key, r.seq, r.until, int64(r.ttl))
		case changed:
			err = v.c.run("save", r.values(n.key)...)
		case fresh:
			err = v.c.run("add", r.values(n.key)...)
			v.rows++
		}
		if err != nil {
			return err
		}
		r.change = same
	}
	return nil
}

// saveMeta writes the mark and the record clock.
func (v *view) saveMeta() (err error) {
	m := v.meta
	switch {
	case m == nil:
		return nil
	case m.changed:
		err = v.c.run("setMeta", m.mark, m.base, m.anchor, m.domain, m.high)
	case m.drawn:
		err = v.c.run("setMark", m.mark)
	}
	m.drawn, m.changed = false, false
	return err
}
