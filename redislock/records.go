package redislock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/dibslock/dibs/driver"
)

// recordCount is how many records one script reads.
const recordCount = 50

// Get returns the record at key and the server's now.
func (s *Store) Get(ctx context.Context, key string) (driver.Record, time.Time, error) {
	if err := driver.CheckName(key); err != nil {
		return driver.Record{}, time.Time{}, err
	}
	rs, now, err := s.records(ctx, []string{key})
	if err != nil {
		return driver.Record{}, time.Time{}, err
	}
	return rs[0], now, nil
}

// records reads the records at some keys. One that is not there has version 0.
func (s *Store) records(ctx context.Context, at []string) ([]driver.Record, time.Time, error) {
	keys := make([]string, len(at))
	for i, key := range at {
		keys[i] = s.keys.record(key)
	}
	msgs, err := s.evalAll(ctx, recordGetScript, at[0], len(at)+1, keys, nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	head, err := msgs[0].ToArray()
	f := &fields{rest: head, err: err}
	now := time.UnixMicro(int64(f.number()))
	rs := make([]driver.Record, len(at))
	for i := range at {
		row, err := msgs[i+1].ToArray()
		if f.err == nil {
			f.rest, f.err = row, err
		}
		rs[i] = f.record(at[i])
	}
	return rs, now, f.err
}

// record reads a record that record_get.lua tells of.
func (f *fields) record(key string) driver.Record {
	if f.err != nil || len(f.rest) == 0 {
		return driver.Record{Key: key}
	}
	r := driver.Record{Key: key, Version: f.number(), Value: []byte(f.text()), TokenName: f.text(), Token: f.number()}
	if f.err == nil && len(f.rest) == 1 {
		var ms int64
		ms, f.err = f.rest[0].ToInt64()
		r.Retention = time.Duration(max(ms, 1)) * time.Millisecond
	}
	return r
}

// Put writes r if its version is the record's.
func (s *Store) Put(ctx context.Context, r driver.Record) (uint64, error) {
	if err := checkRecord(r); err != nil {
		return 0, err
	}
	ms := (r.Retention + time.Millisecond - 1) / time.Millisecond
	msgs, err := s.evalAll(ctx, recordPutScript, r.Key, 2, []string{s.keys.mark, s.keys.record(r.Key)},
		[]string{digits(r.Version), r.TokenName, digits(r.Token), string(r.Value), strconv.FormatInt(int64(ms), 10)})
	if err != nil {
		return 0, err
	}
	f := &fields{rest: msgs}
	kind, number := f.text(), f.number()
	switch {
	case f.err != nil:
		return 0, f.err
	case kind == "fenced":
		return 0, fmt.Errorf("record %q: token %d of %q is older than %d: %w", r.Key, r.Token, r.TokenName, number, driver.ErrFenced)
	case kind == "stale":
		return 0, stale(r.Key, r.Version, number)
	}
	return number, nil
}

// Delete removes the record at key if its version is version.
func (s *Store) Delete(ctx context.Context, key string, version uint64) error {
	if err := driver.CheckName(key); err != nil {
		return err
	}
	msgs, err := s.evalAll(ctx, recordDeleteScript, key, 2, []string{s.keys.record(key)}, []string{digits(version)})
	if err != nil {
		return err
	}
	f := fields{rest: msgs}
	if kind, old := f.text(), f.number(); f.err == nil && kind == "stale" {
		return stale(key, version, old)
	}
	return f.err
}

// ListRecords yields the records that are there while it scans the server's keys,
// all of them.
func (s *Store) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.Record, error] {
	return func(yield func(driver.Record, error) bool) {
		found, err := s.scan(ctx, s.link, s.keys.records(prefix), s.keys.recordOf)
		if err != nil {
			yield(driver.Record{}, err)
			return
		}
		for chunk := range slices.Chunk(found, recordCount) {
			rs, _, err := s.records(ctx, chunk)
			if err != nil {
				yield(driver.Record{}, err)
				return
			}
			for _, r := range rs {
				if r.Version != 0 && !yield(r, nil) {
					return
				}
			}
		}
	}
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
	}
	return driver.CheckName(r.TokenName)
}

func stale(key string, version, old uint64) error {
	return fmt.Errorf("record %q: it has version %d, not %d: %w", key, old, version, driver.ErrStale)
}
