package dibs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A book is one record as the primitives that remember (Limiter, Once) read and
// write it, and what they do about answers that are not clear. Time in it is the
// store's alone.
type book struct {
	client *Client
	op     string // for errors: "limit", "once"
	name   string // as its user calls it
	err    error  // it can't be asked for
}

// longest is how long a record may be kept: ten years, well below where an
// instant of any store overflows.
const longest = 10 * 365 * 24 * time.Hour

func (c *Client) book(op, name string) book {
	b := book{client: c, op: op, name: name, err: c.err}
	if b.err != nil {
		return b
	}
	if err := driver.CheckName(name); err != nil {
		b.err = fmt.Errorf("dibs: %s: %w", op, err)
	} else if n := len(b.key()); n > driver.MaxName {
		b.err = b.rejected("the name is %d bytes long; at most %d are allowed here", len(name), driver.MaxName-(n-len(name)))
	} else if _, ok := c.core.store.(driver.Records); !ok {
		b.err = fmt.Errorf("dibs: %s %q: %w", op, name, driver.Unsupportedf("%s keeps no records", c.core.facts.Driver))
	}
	return b
}

// key is the record's: records share no space with the names of locks.
func (b *book) key() string { return b.op + "/" + b.name }

func (b *book) rejected(format string, args ...any) error {
	return fmt.Errorf("dibs: %s: %w", b.op, driver.Rejectedf(b.name, format, args...))
}

// An edit looks at the record as it is, with the store's now, and says what it
// is to become: nil leaves it, and a Retention of 0 deletes it. It may be asked
// again and again: when another was quicker, and, because an answer can be lost,
// also about a record that it wrote itself, which it must recognize. Its error
// is final.
type edit func(r driver.Record, now time.Time) (*driver.Record, error)

// edit makes the edit, by version, until that is certain. Answers that are not
// clear are retried for one TTL (law 41) or until ctx or the client ends; then
// the error is an ErrUnknown, and the edit may still happen.
func (b *book) edit(ctx context.Context, e edit) error {
	if b.err != nil {
		return b.err
	}
	c, set := b.client.core, b.client.set
	if !c.calls.enter() {
		return b.failed(ErrClosed)
	}
	defer c.calls.leave()
	var (
		began = c.clock.now()
		clear = began // when another was last seen to be quicker
		last  error
	)
	for try := 1; ; try++ {
		if cause := c.over(ctx); cause != nil {
			return &WaitError{Name: b.name, Waited: c.clock.now() - began, Cause: cause, Last: last}
		}
		settled, err := b.round(ctx, e)
		switch {
		case settled:
			return err
		case errors.Is(err, driver.ErrStale):
			clear = c.clock.now()
		case driver.Certain(err), errors.Is(err, ErrClosed):
			return b.failed(err)
		case last == nil || c.over(ctx) == nil: // a call that the end of the wait cut off says nothing
			last = b.failed(err)
		}
		if silent := c.clock.now() - clear; set.StoreDown == FailDown && silent >= set.TTL {
			return b.failed(fmt.Errorf("no clear answer for %v: %w", silent.Round(time.Millisecond), err))
		}
		c.pause(ctx, backoff(min(try, 6), time.Millisecond, 100*time.Millisecond))
	}
}

// round reads, judges and writes once. It is not settled if the store said no,
// or nothing clear.
func (b *book) round(ctx context.Context, e edit) (settled bool, err error) {
	records := b.client.core.store.(driver.Records)
	r, now, err := b.read(ctx)
	if err != nil {
		return false, err
	}
	next, err := e(r, now)
	if err != nil || next == nil {
		return true, err
	}
	call, cancel := context.WithTimeout(ctx, b.client.set.CallTimeout)
	defer cancel()
	if next.Retention == 0 {
		err = records.Delete(call, b.key(), r.Version)
	} else {
		next.Key, next.Version = b.key(), r.Version
		_, err = records.Put(call, *next)
	}
	return err == nil, err
}

func (b *book) read(ctx context.Context) (driver.Record, time.Time, error) {
	call, cancel := context.WithTimeout(ctx, b.client.set.CallTimeout)
	defer cancel()
	return b.client.core.store.(driver.Records).Get(call, b.key())
}

func (b *book) failed(err error) error { return b.client.core.error(b.op, b.name, err) }

// over tells why there is no point in going on, or nil.
func (c *core) over(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closing:
		return ErrClosed
	default:
		return nil
	}
}

// pause waits for d, or until ctx or the client ends.
func (c *core) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-c.closing:
	}
}

// forget deletes the record, whatever it says.
func (b *book) forget(ctx context.Context) error {
	return b.edit(ctx, func(r driver.Record, _ time.Time) (*driver.Record, error) {
		if r.Version == 0 {
			return nil, nil
		}
		return &driver.Record{}, nil
	})
}
