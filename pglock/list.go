package pglock

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// listPage is how many names, records or events one statement reads: a reader that
// stops in the middle holds nothing back.
const listPage = 500

// List yields who holds and who waits. Each name is as of one moment.
func (t *Table) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		for last := ""; ; {
			names, err := t.names(ctx, prefix, last)
			if err != nil {
				yield(driver.Holder{}, err)
				return
			}
			for _, key := range slices.Sorted(maps.Keys(names)) {
				last = key
				for _, h := range names[key].list() {
					if !yield(h, nil) {
						return
					}
				}
			}
			if len(names) < listPage {
				return
			}
		}
	}
}

func (t *Table) names(ctx context.Context, prefix, last string) (names map[string]*name, err error) {
	err = t.call(ctx, func(ctx context.Context, s *session) error {
		names = make(map[string]*name)
		return s.run(ctx, t.sql.named("list"), []any{prefix, last, listPage}, func(rows pgx.Rows) error { return scan(rows, names) })
	})
	return names, err
}

// list is who holds n and who waits, by token and then in line. What has ended is
// not shown; nothing of it is written.
func (n *name) list() []driver.Holder {
	n.end()
	var claims, line []driver.Holder
	for _, r := range n.rows {
		if r.taking() {
			claims = append(claims, *r.holder(n.now, r.Until))
		}
	}
	slices.SortFunc(claims, func(a, b driver.Holder) int { return cmp.Compare(a.Token, b.Token) })
	for _, p := range n.line() {
		if n.waits(p) {
			line = append(line, *p.holder(n.now, n.dies(p)))
		}
	}
	return append(claims, line...)
}
