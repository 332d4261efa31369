package book

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dibslock/dibs/driver"
)

// ErrNone: there is no such record, or not any more.
var ErrNone = errors.New("there is none")

// forever is how long is kept what is deleted by hand, or not at all.
const forever = 10 * 365 * 24 * time.Hour

// A Book reads and writes the records of one namespace. It is safe for concurrent
// use.
type Book struct {
	records driver.Records
	prefix  string
	took    func(time.Duration)
}

// New returns the book of a namespace. took is told how long the store takes to
// answer; it may be nil.
func New(records driver.Records, namespace string, took func(time.Duration)) *Book {
	if took == nil {
		took = func(time.Duration) {}
	}
	return &Book{records: records, prefix: "serve/" + namespace + "/", took: took}
}

// callTime bounds one call of the store.
const callTime = 5 * time.Second

// get reads the record at key.
func (b *Book) get(ctx context.Context, key string) (driver.Record, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	began := time.Now()
	r, now, err := b.records.Get(ctx, b.prefix+key)
	b.took(time.Since(began))
	if err != nil {
		return r, now, fmt.Errorf("reading %s: %w", key, err)
	}
	return r, now, nil
}

// load reads the JSON at key into v, and tells whether there is any.
func (b *Book) load(ctx context.Context, key string, v any) (bool, time.Time, error) {
	r, now, err := b.get(ctx, key)
	if err != nil || r.Version == 0 {
		return false, now, err
	}
	if err := json.Unmarshal(r.Value, v); err != nil {
		return false, now, fmt.Errorf("reading %s: %w", key, err)
	}
	return true, now, nil
}

// errSame says that nothing is to be changed.
var errSame = errors.New("nothing to change")

// A stamp is the lock and the token under which a record is written; zero: none.
type stamp struct {
	lock  string
	token uint64
}

// edit changes the record at key, whose value is a T, as f says, which is asked
// again when another was quicker. f's error ends it; errSame does without one.
// Answers that are not clear are retried until ctx ends. A retention of 0 deletes
// the record.
func edit[T any](ctx context.Context, b *Book, key string, s stamp, f func(v *T, found bool, now time.Time) (time.Duration, error)) error {
	for try := 0; ; try++ {
		err := editOnce(ctx, b, key, s, f)
		var final *finalError
		switch {
		case errors.As(err, &final):
			if errors.Is(final.err, errSame) {
				return nil
			}
			return final.err
		case err == nil, errors.Is(err, driver.ErrFenced), errors.Is(err, driver.ErrRejected), errors.Is(err, driver.ErrClosed):
			return err
		}
		pause := min(time.Millisecond<<min(try, 8), 100*time.Millisecond)
		select {
		case <-time.After(rand.N(pause) + 1):
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
	}
}

type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

func editOnce[T any](ctx context.Context, b *Book, key string, s stamp, f func(v *T, found bool, now time.Time) (time.Duration, error)) error {
	old, now, err := b.get(ctx, key)
	if err != nil {
		return err
	}
	var v T
	if old.Version != 0 {
		if err := json.Unmarshal(old.Value, &v); err != nil {
			return &finalError{fmt.Errorf("reading %s: %w", key, err)}
		}
	}
	retention, err := f(&v, old.Version != 0, now)
	if err != nil {
		return &finalError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	began := time.Now()
	defer func() { b.took(time.Since(began)) }()
	if retention == 0 {
		err = b.records.Delete(ctx, b.prefix+key, old.Version)
	} else {
		var value []byte
		if value, err = json.Marshal(v); err != nil {
			return &finalError{err}
		}
		_, err = b.records.Put(ctx, driver.Record{
			Key: b.prefix + key, Value: value, Version: old.Version,
			TokenName: s.lock, Token: s.token, Retention: retention,
		})
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}
