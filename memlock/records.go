package memlock

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
)

// record is a value that lives until its retention ends.
type record struct {
	driver.Record
	until time.Time
}

// Get returns the record at key and now.
func (s *Store) Get(ctx context.Context, key string) (driver.Record, time.Time, error) {
	if err := driver.CheckName(key); err != nil {
		return driver.Record{}, time.Time{}, err
	}
	if err := s.enter(ctx); err != nil {
		return driver.Record{}, time.Time{}, err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	return s.m.recordLocked(key, now).shown(now), now.Round(0), nil
}

// Put writes r if its version is the record's.
func (s *Store) Put(ctx context.Context, r driver.Record) (uint64, error) {
	if err := checkRecord(r); err != nil {
		return 0, err
	}
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	old := s.m.recordLocked(r.Key, now)
	switch {
	case r.TokenName == "":
		r.TokenName, r.Token = old.TokenName, old.Token
	case r.TokenName == old.TokenName && r.Token < old.Token:
		return 0, fmt.Errorf("record %q: token %d of %q is older than %d: %w", r.Key, r.Token, r.TokenName, old.Token, driver.ErrFenced)
	}
	if r.Version != old.Version {
		return 0, stale(r.Key, r.Version, old)
	}
	s.m.version++ // no version is ever given out twice, not even by another key
	r.Version = s.m.version
	r.Value = slices.Clone(r.Value)
	s.m.records[r.Key] = &record{r, now.Add(r.Retention)}
	return r.Version, nil
}

// Delete removes the record at key if its version is version.
func (s *Store) Delete(ctx context.Context, key string, version uint64) error {
	if err := driver.CheckName(key); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.m.mu.Unlock()
	if old := s.m.recordLocked(key, time.Now()); old.Version != version {
		return stale(key, version, old)
	}
	delete(s.m.records, key)
	return nil
}

// ListRecords yields the records, as of its start.
func (s *Store) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.Record, error] {
	return func(yield func(driver.Record, error) bool) {
		all, err := s.listRecords(ctx, prefix)
		if err != nil {
			yield(driver.Record{}, err)
			return
		}
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *Store) listRecords(ctx context.Context, prefix string) ([]driver.Record, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	var all []driver.Record
	for _, key := range slices.Sorted(maps.Keys(s.m.records)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if r := s.m.recordLocked(key, now); r.Version != 0 {
			all = append(all, r.shown(now))
		}
	}
	return all, nil
}

// recordLocked returns the record at key, or one with version 0; it forgets one
// whose retention has ended.
func (m *memory) recordLocked(key string, now time.Time) *record {
	r := m.records[key]
	switch {
	case r == nil:
		return &record{Record: driver.Record{Key: key}, until: now}
	case !now.Before(r.until):
		delete(m.records, key)
		return &record{Record: driver.Record{Key: key}, until: now}
	}
	return r
}

// shown is r as its readers see it.
func (r *record) shown(now time.Time) driver.Record {
	c := r.Record
	c.Value = slices.Clone(c.Value)
	c.Retention = r.until.Sub(now)
	return c
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

func stale(key string, version uint64, old *record) error {
	return fmt.Errorf("record %q: it has version %d, not %d: %w", key, old.Version, version, driver.ErrStale)
}
