package sqlitelock

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"iter"
	"slices"

	"github.com/dibslock/dibs/driver"
)

// listPage is how many names, records or events one read takes: a reader that
// stops in the middle holds nothing back.
const listPage = 200

// List yields who holds and who waits. Each name is as of one moment.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		for last := ""; ; {
			page, err := ask(ctx, s.read, func(t *tx) (holders, error) { return t.list(prefix, last) })
			if err != nil {
				yield(driver.Holder{}, err)
				return
			}
			for _, h := range page.all {
				if !yield(h, nil) {
					return
				}
			}
			if last = page.last; last == "" {
				return
			}
		}
	}
}

// holders is a page of List.
type holders struct {
	all  []driver.Holder
	last string // "": there are no more
}

// list reads the names after last.
func (t *tx) list(prefix, last string) (holders, error) {
	var p holders
	var names []string
	err := t.each("names", func(row []sqldriver.Value) bool {
		name, _ := row[0].(string)
		names = append(names, name)
		return true
	}, prefix, beyond(prefix), last, int64(listPage))
	if err != nil {
		return p, err
	}
	if len(names) == listPage {
		p.last = names[listPage-1]
	}
	for _, key := range names {
		n, err := t.load(key)
		if err != nil {
			return p, err
		}
		p.all = append(p.all, n.list(&t.step)...)
	}
	return p, nil
}

// list is who holds n and who waits, by token and then in line. It changes a copy,
// so that nothing which has ended is shown.
func (n *name) list(s *step) []driver.Holder {
	c := n.clone()
	quiet := *s
	quiet.log, quiet.lost = nil, func(*row, string, error) {}
	c.end(&quiet)
	var claims, line []driver.Holder
	for _, r := range c.rows {
		if r.taking() {
			claims = append(claims, *r.holder(n.key, s.now))
		}
	}
	slices.SortFunc(claims, func(a, b driver.Holder) int { return cmp.Compare(a.Token, b.Token) })
	for _, r := range c.line() {
		if c.waits(r, s) {
			line = append(line, *r.holder(n.key, s.now))
		}
	}
	return append(claims, line...)
}

// beyond is the first text after all that begin with prefix; nil: there is none.
func beyond(prefix string) sqldriver.Value {
	if prefix == "" {
		return nil
	}
	b := []byte(prefix)
	b[len(b)-1]++ // UTF-8 has no byte 0xff
	return string(b)
}
