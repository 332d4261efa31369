package pglock

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// Get returns the record at key and the server's now.
func (t *Table) Get(ctx context.Context, key string) (r driver.Record, now time.Time, err error) {
	if err := driver.CheckName(key); err != nil {
		return driver.Record{}, time.Time{}, err
	}
	err = t.call(ctx, func(ctx context.Context, s *session) error {
		r, now, err = t.get(ctx, s, key)
		return err
	})
	if err != nil {
		return driver.Record{}, time.Time{}, err
	}
	return r, now, nil
}

func (t *Table) get(ctx context.Context, s *session, key string) (r driver.Record, now time.Time, err error) {
	r.Key = key
	err = s.run(ctx, t.sql.named("get"), []any{key}, func(rows pgx.Rows) error {
		var micros int64
		var version, token, until *int64
		var tokenName *string
		if err := rows.Scan(&micros, &r.Value, &version, &tokenName, &token, &until); err != nil {
			return err
		}
		now = time.UnixMicro(micros)
		if version != nil {
			r.Version, r.TokenName, r.Token, r.Retention = uint64(*version), *tokenName, uint64(*token), span(*until-micros)
		}
		return nil
	})
	return r, now, err
}

// Put writes r if its version is the record's.
func (t *Table) Put(ctx context.Context, r driver.Record) (version uint64, err error) {
	if err := checkRecord(r); err != nil {
		return 0, err
	}
	if r.Value == nil {
		r.Value = []byte{}
	}
	if r.TokenName == "" {
		r.Token = 0
	}
	err = t.call(ctx, func(ctx context.Context, s *session) error {
		version, err = t.put(ctx, s, r)
		return err
	})
	if err != nil {
		return 0, err
	}
	return version, nil
}

func (t *Table) put(ctx context.Context, s *session, r driver.Record) (uint64, error) {
	args := []any{r.Key, r.Value, int64(r.Version), r.TokenName, int64(r.Token), micros(r.Retention)}
	for range maxRounds {
		var version int64
		err := s.run(ctx, t.sql.named("put"), args, func(rows pgx.Rows) error { return rows.Scan(&version) })
		if contended(err) {
			continue
		}
		if err != nil || version != 0 {
			return uint64(version), err
		}
		// It was certainly not written. A look tells why, unless it has changed since.
		old, _, err := t.get(ctx, s, r.Key)
		switch {
		case contended(err):
		case err != nil:
			return 0, err
		case r.TokenName != "" && r.TokenName == old.TokenName && r.Token < old.Token:
			return 0, fmt.Errorf("record %q: token %d of %q is older than %d: %w", r.Key, r.Token, r.TokenName, old.Token, driver.ErrFenced)
		case r.Version != old.Version:
			return 0, stale(r.Key, r.Version, old.Version)
		}
	}
	return 0, errBusy
}

// Delete removes the record at key if its version is version.
func (t *Table) Delete(ctx context.Context, key string, version uint64) error {
	if err := driver.CheckName(key); err != nil {
		return err
	}
	return t.call(ctx, func(ctx context.Context, s *session) error { return t.remove(ctx, s, key, version) })
}

func (t *Table) remove(ctx context.Context, s *session, key string, version uint64) error {
	for range maxRounds {
		var gone bool
		err := s.run(ctx, t.sql.named("delete"), []any{key, int64(version)}, func(pgx.Rows) error { gone = true; return nil })
		if contended(err) {
			continue
		}
		if err != nil || gone {
			return err
		}
		old, _, err := t.get(ctx, s, key)
		switch {
		case contended(err):
		case err != nil:
			return err
		case old.Version != version:
			return stale(key, version, old.Version)
		case version == 0:
			return nil // there is none, as the caller thinks
		}
	}
	return errBusy
}

// ListRecords yields the records whose keys begin with prefix.
func (t *Table) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.Record, error] {
	return func(yield func(driver.Record, error) bool) {
		for last := ""; ; {
			page, err := t.records(ctx, prefix, last)
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
			if len(page) < listPage {
				return
			}
		}
	}
}

func (t *Table) records(ctx context.Context, prefix, last string) (page []driver.Record, err error) {
	err = t.call(ctx, func(ctx context.Context, s *session) error {
		page = nil
		return s.run(ctx, t.sql.named("records"), []any{prefix, last, listPage}, func(rows pgx.Rows) error {
			var r driver.Record
			var version, token, left int64
			err := rows.Scan(&r.Key, &r.Value, &version, &r.TokenName, &token, &left)
			r.Version, r.Token, r.Retention = uint64(version), uint64(token), span(left)
			page = append(page, r)
			return err
		})
	})
	return page, err
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
