package sqlitelock

import (
	"errors"

	"github.com/dibslock/dibs/driver"
)

// Most of what a transaction costs is its fsync, and half of the transactions can
// do without: those that only give back or only prolong. If the power fails before
// SQLite's log is on the disk, they are undone. But then all who held anything are
// dead: the machine boots into another clock domain, where what was given back ends
// as the claims of the dead do, by their life file or a full TTL later. What draws
// a number (a grant, a hand-over, a place, a record) is on the disk before anybody
// is told, and with it, since the log is written in order, everything before it. A
// crash of the process undoes nothing in either case.
//
// In WAL mode SQLite's "synchronous = NORMAL" is exactly that: no fsync at the
// commit, all those that keep the file whole.

// lazy tells whether an operation may be answered before it is on the disk, as far
// as the view knows; a transaction that draws a number all the same is redone. nil:
// it may not.
type lazy func(*view) bool

// always is for operations that never draw.
func always(*view) bool { return true }

// errDrew says that a lazy transaction drew a number.
var errDrew = errors.New("a lazy transaction drew a number")

// mayBeLazy tells whether all operations of batch may be.
func mayBeLazy(batch []*op, v *view) bool {
	for _, o := range batch {
		if o.lazy == nil || !o.lazy(v) {
			return false
		}
	}
	return true
}

// setLazy says how the next transaction is to reach the disk.
func (c *conn) setLazy(lazy bool) error {
	if lazy == c.lazy {
		return nil
	}
	sql := "PRAGMA synchronous = FULL"
	if lazy {
		sql = "PRAGMA synchronous = NORMAL"
	}
	if err := c.script(sql); err != nil {
		return err
	}
	c.lazy = lazy
	return nil
}

// lazyRelease tells of releases of key: it is lazy unless somebody waits, who may
// be handed the name. What the journal says of it is to stay said.
func (s *Store) lazyRelease(key string) lazy {
	if s.opts.Journal {
		return nil
	}
	return func(v *view) bool {
		n := v.names[key]
		return n != nil && len(n.line()) == 0
	}
}

// lazyRenewal tells of renewals: a claim without a token may be one handed over,
// and learn of its grant.
func lazyRenewal(cs []driver.Claim) lazy {
	for _, c := range cs {
		if c.Token == 0 {
			return nil
		}
	}
	return always
}
