package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"iter"
	"time"

	"github.com/dibslock/dibs/driver"
)

// record is a row of the table records.
type record struct {
	driver.Record
	until int64 // by the record clock
}

// Get returns the record at key and the record clock's now.
func (s *Store) Get(ctx context.Context, key string) (driver.Record, time.Time, error) {
	if err := driver.CheckName(key); err != nil {
		return driver.Record{}, time.Time{}, err
	}
	type answer struct {
		record
		now time.Time
	}
	a, err := ask(ctx, s.read, func(t *tx) (a answer, err error) {
		m, err := t.v.known()
		if err != nil {
			t.err = err
			return a, err
		}
		a.now = m.time(t.now, t.s.clock)
		a.record, err = t.getRecord(key, a.now)
		return a, err
	})
	return a.Record, a.now, err
}

// Put writes r if its version is the record's.
func (s *Store) Put(ctx context.Context, r driver.Record) (uint64, error) {
	if err := checkRecord(r); err != nil {
		return 0, err
	}
	return ask(ctx, s.write, func(t *tx) (uint64, error) { return t.putRecord(r) })
}

func (t *tx) putRecord(r driver.Record) (uint64, error) {
	m, err := t.v.known()
	if err != nil {
		t.err = err
		return 0, err
	}
	old, err := t.getRecord(r.Key, m.time(t.now, t.s.clock))
	switch {
	case err != nil:
		return 0, err
	case r.TokenName == "":
		r.TokenName, r.Token = old.TokenName, old.Token
	case r.TokenName == old.TokenName && r.Token < old.Token:
		return 0, fmt.Errorf("record %q: token %d of %q is older than %d: %w", r.Key, r.Token, r.TokenName, old.Token, driver.ErrFenced)
	}
	if r.Version != old.Version {
		return 0, stale(r.Key, r.Version, old)
	}
	now := m.tick(t.now, t.s.clock)
	version := t.next() // of all records: none is ever given out twice
	value := r.Value
	if value == nil {
		value = []byte{} // NULL is no value
	}
	t.err = t.v.c.run("putRecord", r.Key, value, version, r.TokenName, int64(r.Token), later(now.UnixNano(), r.Retention))
	return uint64(version), t.err
}

// Delete removes the record at key if its version is version.
func (s *Store) Delete(ctx context.Context, key string, version uint64) error {
	if err := driver.CheckName(key); err != nil {
		return err
	}
	return s.write.do(ctx, func(t *tx) error {
		m, err := t.v.known()
		if err != nil {
			t.err = err
			return err
		}
		old, err := t.getRecord(key, m.time(t.now, t.s.clock))
		if err != nil {
			return err
		}
		if old.Version != version {
			return stale(key, version, old)
		}
		m.tick(t.now, t.s.clock)
		t.err = t.v.c.run("dropRecord", key)
		return t.err
	})
}

// ListRecords yields the records whose keys begin with prefix.
func (s *Store) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.Record, error] {
	return func(yield func(driver.Record, error) bool) {
		for last := ""; ; {
			page, err := ask(ctx, s.read, func(t *tx) ([]driver.Record, error) { return t.listRecords(prefix, last) })
			if err != nil {
				yield(driver.Record{}, err)
				return
			}
			for _, r := range page {
				last = r.Key
				if !yield(r, nil) {
					return
				}
			}
			if len(page) < recordPage {
				return
			}
		}
	}
}

// recordPage is small, because a record may be a MiB.
const recordPage = 32

func (t *tx) listRecords(prefix, last string) (page []driver.Record, err error) {
	m, err := t.v.known()
	if err != nil {
		t.err = err
		return nil, err
	}
	now := m.time(t.now, t.s.clock)
	err = t.each("listRecords", func(row []sqldriver.Value) bool {
		key, _ := row[0].(string)
		page = append(page, scanRecord(key, row[1:]).shown(now))
		return true
	}, prefix, beyond(prefix), last, now.UnixNano(), int64(recordPage))
	return page, err
}

// getRecord returns the record at key, or one with version 0.
func (t *tx) getRecord(key string, now time.Time) (record, error) {
	r := record{Record: driver.Record{Key: key}}
	err := t.each("getRecord", func(row []sqldriver.Value) bool {
		if got := scanRecord(key, row); got.until > now.UnixNano() {
			r = got
			r.Record = got.shown(now)
		}
		return true
	}, key)
	return r, err
}

func scanRecord(key string, row []sqldriver.Value) record {
	n := func(i int) int64 { x, _ := row[i].(int64); return x }
	value, _ := row[0].([]byte)
	name, _ := row[2].(string)
	return record{
		Record: driver.Record{Key: key, Value: append([]byte{}, value...), Version: uint64(n(1)), TokenName: name, Token: uint64(n(3))},
		until:  n(4),
	}
}

// shown is r as its readers see it.
func (r record) shown(now time.Time) driver.Record {
	r.Retention = time.Duration(r.until - now.UnixNano())
	return r.Record
}

// checkRecord tells whether r may be put.
func checkRecord(r driver.Record) error {
	if err := driver.CheckName(r.Key); err != nil {
		return err
	}
	switch {
	case len(r.Value) > driver.MaxRecord:
		return driver.Rejectedf(r.Key, "the value is %d bytes long; at most %d are allowed", len(r.Value), driver.MaxRecord)
	case r.Retention <= 0:
		return driver.Rejectedf(r.Key, "retention %v: it must be positive", r.Retention)
	case r.TokenName == "":
		return nil
	case r.Token == 0:
		return driver.Rejectedf(r.Key, "token 0 of %q: nothing to fence with", r.TokenName)
	case r.Token > 1<<63-1:
		return driver.Rejectedf(r.Key, "token %d is none of this store's", r.Token)
	}
	return driver.CheckName(r.TokenName)
}

func stale(key string, version uint64, old record) error {
	return fmt.Errorf("record %q: it has version %d, not %d: %w", key, old.Version, version, driver.ErrStale)
}
