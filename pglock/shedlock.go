package pglock

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// shedlockFacts are those of a table with ShedLock's own widths.
var shedlockFacts = driver.Facts{
	Driver:   "postgres",
	Survival: driver.ByTTL,
	Modes:    driver.Exclusive,
	Fencing:  driver.AcrossRestart,
	Slack:    timeStep, // a column may know whole milliseconds only
	MinTTL:   100 * time.Millisecond,
	MaxTTL:   365 * 24 * time.Hour,
	Step:     timeStep,
	MaxBatch: 1_000,
}

// A Shedlock shares its locks with programs that lock by ShedLock's JDBC provider:
// a lock is a row of its table, and closed until lock_until. What ShedLock has no
// column for stands in locked_by, so that tokens, Keep, Delay and revocation are as
// ever among the users of this package, and another program is only kept out.
//
// Such a lock is exclusive. There is no line and no signal: a waiter looks again
// when the lock's time is up, and else every second or so. A token is locked_at, in
// microseconds: it grows whoever locks in between, as long as the row is not
// deleted and the clock not set back.
//
// It is a driver.Lister, Revoker and Diagnoser. It lists what other programs hold,
// and never takes it away.
type Shedlock struct {
	t     *Table // its connections, and its life
	sql   statements
	table shedTable
	facts driver.Facts
}

var (
	_ driver.Store   = (*Shedlock)(nil)
	_ driver.Lister  = (*Shedlock)(nil)
	_ driver.Revoker = (*Shedlock)(nil)
)

// openShedlock opens the table and looks at its columns.
func openShedlock(ctx context.Context, p *params, table shedTable) (*Shedlock, error) {
	t := newTable(p, TableOptions{})
	t.spares = calls
	t.dial = table.dialer(p)
	s := &Shedlock{t: t, sql: table.statements(), table: table, facts: shedlockFacts}
	err := s.call(ctx, func(ctx context.Context, c *session) error { return s.table.look(ctx, c, s.sql) })
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	if s.table.width < driver.MaxName {
		s.facts.Waives = []driver.Waiver{{Law: 8, Why: s.table.tooLong()}}
	}
	return s, nil
}

// call runs f on a connection.
func (s *Shedlock) call(ctx context.Context, f func(context.Context, *session) error) error {
	return s.t.call(ctx, func(ctx context.Context, c *session) error {
		err := f(ctx, c)
		if e := s.table.refusedForGood(err); e != nil {
			return e
		}
		return err
	})
}

// Facts tells what the store promises.
func (s *Shedlock) Facts() driver.Facts { return s.facts }

// Close frees the store's connections. Claims that were not released end by their
// TTL.
func (s *Shedlock) Close() error { return s.t.Close() }

// Acquire asks once for c. It takes no place.
func (s *Shedlock) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := c.Check(s.facts)
	if err != nil {
		return driver.Grant{}, err
	}
	if err := s.table.fits(c.Name); err != nil {
		return driver.Grant{}, err
	}
	c, c.Patience = veiled(c), 0
	var g driver.Grant
	err = s.one(ctx, c.Name, func(n *name) (err error) {
		g, err = n.acquire(c)
		return err
	})
	if err != nil {
		return driver.Grant{}, err
	}
	return g, nil
}

// Renew proves claims.
func (s *Shedlock) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if len(cs) > s.facts.MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), s.facts.MaxBatch)
	}
	if ctx.Err() != nil {
		return nil, left(ctx)
	}
	proofs := make([]driver.Proof, len(cs))
	claims := make(map[string][]int) // of each name, which of cs
	for i, c := range cs {
		c, err := c.Check(s.facts)
		if err == nil {
			err = s.table.fits(c.Name)
		}
		if err != nil {
			proofs[i].Err = err
			continue
		}
		claims[c.Name] = append(claims[c.Name], i)
	}
	busy, err := s.step(ctx, slices.Sorted(maps.Keys(claims)), func(n *name) {
		for _, i := range claims[n.key] {
			c, _ := cs[i].Check(s.facts)
			proofs[i] = n.renew(veiled(c))
		}
	})
	if err == nil && len(busy) > 0 {
		err = unknown(errBusy)
	}
	for _, key := range busy {
		for _, i := range claims[key] {
			proofs[i] = driver.Proof{Err: err}
		}
	}
	return proofs, err
}

// Release gives back c. What it has of Keep runs on in lock_until, as ShedLock's
// lockAtLeastFor does.
func (s *Shedlock) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.CheckName(c.Name); err != nil {
		return err
	}
	if c.ID == "" {
		return driver.Rejectedf(c.Name, "the claim has no ID")
	}
	if s.table.fits(c.Name) != nil {
		return &driver.NotHeldError{Name: c.Name}
	}
	return s.one(ctx, c.Name, func(n *name) error { return n.release(veiled(c)) })
}

// Revoke takes the claim with r.Token away, unless it is another program's: that
// has no way to be told.
func (s *Shedlock) Revoke(ctx context.Context, r driver.Revocation) error {
	if err := driver.CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Reason) > driver.MaxNote || !utf8.ValidString(r.Reason) {
		return driver.Rejectedf(r.Name, "the reason must be valid UTF-8 of at most %d bytes", driver.MaxNote)
	}
	if s.table.fits(r.Name) != nil {
		return &driver.NotHeldError{Name: r.Name}
	}
	return s.one(ctx, r.Name, func(n *name) error {
		if h := n.granted(stranger); h != nil && uint64(h.Token) == r.Token {
			return driver.Rejectedf(r.Name, "it is held by another program (locked_by is %q), which dibs can't tell of it; it ends in %v by itself, and is free at once after: UPDATE %s SET %s = timezone('utc', now()) WHERE %s = '...'",
				h.Note, span(h.Until-n.now), s.table.name, s.table.until, s.table.key)
		}
		return n.revoke(r)
	})
}

// List yields who holds. Each name is as of one moment.
func (s *Shedlock) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		for last := ""; ; {
			var rows []*shedRow
			err := s.call(ctx, func(ctx context.Context, c *session) (err error) {
				rows, err = s.read(ctx, c, "list", prefix, last, listPage)
				return err
			})
			if err != nil {
				yield(driver.Holder{}, err)
				return
			}
			for _, r := range rows {
				last = r.key
				for _, h := range r.name(s.table.unit).list() {
					if !yield(h, nil) {
						return
					}
				}
			}
			if len(rows) < listPage {
				return
			}
		}
	}
}

// one has run work out the step of one name.
func (s *Shedlock) one(ctx context.Context, key string, run func(n *name) error) error {
	var answer error
	busy, err := s.step(ctx, []string{key}, func(n *name) { answer = run(n) })
	switch {
	case err != nil:
		return err
	case len(busy) > 0:
		return unknown(errBusy)
	}
	return answer
}

// step reads names, has run work out the step of each, and writes those rows that
// nobody has changed meanwhile; for the others it does so again. It returns the
// names that have no answer.
func (s *Shedlock) step(ctx context.Context, keys []string, run func(n *name)) (busy []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	err = s.call(ctx, func(ctx context.Context, c *session) error {
		for round := 0; len(keys) > 0 && round < maxRounds; round++ {
			if round > 2 {
				pause(ctx, time.Duration(round)*time.Millisecond)
			}
			rest, err := s.round(ctx, c, keys, run)
			if err != nil && !contended(err) {
				return err
			}
			if err == nil {
				keys = rest
			}
		}
		return nil
	})
	return keys, err
}

// round is one try of step. It returns the names whose rows have changed.
func (s *Shedlock) round(ctx context.Context, c *session, keys []string, run func(n *name)) (rest []string, err error) {
	rows, err := s.read(ctx, c, "read", keys)
	if err != nil {
		return nil, err
	}
	var fresh, changed []*shedRow
	for _, r := range rows {
		n := r.name(s.table.unit)
		run(n)
		switch r.outcome(n, s.table.unit); {
		case !n.dirty():
		case r.was == nil:
			fresh = append(fresh, r)
		default:
			changed = append(changed, r)
		}
	}
	for sql, rows := range map[string][]*shedRow{"insert": fresh, "update": changed} {
		lost, err := s.write(ctx, c, sql, rows)
		if err != nil {
			return nil, err
		}
		rest = append(rest, lost...)
	}
	return rest, nil
}

func (s *Shedlock) read(ctx context.Context, c *session, sql string, args ...any) (rows []*shedRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err = c.run(ctx, s.sql.named(sql), args, func(found pgx.Rows) error {
		r := new(shedRow)
		var until, at *int64
		var by *string
		if err := found.Scan(&r.key, &r.now, &r.was, &until, &at, &by); err != nil {
			return err
		}
		if until != nil && r.was != nil {
			r.until = *until
		}
		if at != nil {
			r.at = *at
		}
		if by != nil {
			r.by = *by
		}
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// write writes rows, and returns the names of those that it did not.
func (s *Shedlock) write(ctx context.Context, c *session, sql string, rows []*shedRow) (lost []string, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var keys, was, by []string
	var until, at []int64
	for _, r := range rows {
		keys, until, at, by = append(keys, r.key), append(until, r.until), append(at, r.at), append(by, r.by)
		if r.was != nil {
			was = append(was, *r.was)
		}
	}
	args := []any{keys, until, at, by}
	if sql == "update" {
		args = []any{keys, was, until, at, by}
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	written := make(map[string]bool)
	err = c.run(ctx, s.sql.named(sql), args, func(found pgx.Rows) error {
		var key string
		err := found.Scan(&key)
		written[key] = true
		return err
	})
	return slices.DeleteFunc(keys, func(key string) bool { return written[key] }), err
}
