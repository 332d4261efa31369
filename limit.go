package dibs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// ErrLimited: the limit is used up; nothing was taken. See *LimitedError.
var ErrLimited = errors.New("limit used up")

// A Limiter lets n things happen per period, for everybody who asks the store
// under its name together. It is safe for concurrent use and holds nothing.
//
// It is GCRA, the leaky bucket of ATM networks (ITU-T I.371), in one record: up
// to n at once, and then one more each per/n. So n per period is the rate in the
// long run and the size of the largest burst; the most that one stretch of a
// period's length can see is a burst and what came back meanwhile, 2n-1. Time is
// the store's.
type Limiter struct {
	book
	n    int
	step time.Duration // in which one comes back: per/n, rounded up
}

// Limit lets n things happen per period on name. The limit may be changed at any
// time, also while others still use the old one: what was taken stays taken, and
// each judges it by its own limit. A bad limit, or a store without records, is
// the error of every use, before any I/O.
func (c *Client) Limit(name string, n int, per time.Duration) *Limiter {
	l := &Limiter{book: c.book("limit", name), n: n}
	switch {
	case l.err != nil:
	case n < 1:
		l.err = l.rejected("a limit of %d: at least 1 is needed", n)
	case per <= 0 || per > longest:
		l.err = l.rejected("a limit per %v: it must be positive, and at most %v", per, longest)
	case time.Duration(n) > per:
		l.err = l.rejected("%d per %v: more than one a nanosecond", n, per)
	default:
		l.step = (per + time.Duration(n) - 1) / time.Duration(n)
	}
	return l
}

// A Quota is how much of a limit is left, by the store's clock at the time of
// the answer.
type Quota struct {
	Limit     int           // how many at once at the most
	Remaining int           // how many could be taken now
	Reset     time.Duration // in which all of them are back if nobody takes any
}

// A LimitedError says when to try again. It is an ErrLimited.
type LimitedError struct {
	Name string
	Quota
	RetryAfter time.Duration // by then what was asked for is there, if nobody else takes it
}

// Error says when to try again.
func (e *LimitedError) Error() string {
	return fmt.Sprintf("%q: the limit of %d is used up; %d are left, try again in %v", e.Name, e.Limit, e.Remaining, e.RetryAfter.Round(time.Millisecond))
}

// Is makes it an ErrLimited.
func (e *LimitedError) Is(target error) bool { return target == ErrLimited }

// Take takes one, or says when to try again: a *LimitedError has taken nothing.
// An answer that is not clear is retried for one TTL of the settings and then an
// ErrUnknown; one may then have been taken. The limit is never exceeded.
func (l *Limiter) Take(ctx context.Context) (Quota, error) { return l.TakeN(ctx, 1) }

// TakeN takes k at once, or none. More than the limit is an ErrRejected.
func (l *Limiter) TakeN(ctx context.Context, k int) (Quota, error) {
	if l.err == nil && (k < 1 || k > l.n) {
		return Quota{}, l.rejected("%d at once of a limit of %d", k, l.n)
	}
	var left Quota
	id := newID()
	err := l.edit(ctx, func(r driver.Record, now time.Time) (*driver.Record, error) {
		b, err := l.bucket(r, now)
		if err != nil {
			return nil, err
		}
		if b.By == id { // an answer was lost, and it had been taken
			left = l.quota(b.full.Sub(now))
			return nil, nil
		}
		full := b.full.Add(time.Duration(k) * l.step)
		if over := full.Sub(now) - l.whole(); over > 0 {
			return nil, &LimitedError{Name: l.name, Quota: l.quota(b.full.Sub(now)), RetryAfter: over}
		}
		left = l.quota(full.Sub(now))
		value, err := json.Marshal(bucket{FullAt: full.UnixNano(), By: id})
		if err != nil {
			return nil, err
		}
		// Once all are back there is nothing to remember; a second more does no harm.
		return &driver.Record{Value: value, Retention: left.Reset + time.Second}, nil
	})
	return left, err
}

// Wait takes one as soon as it can, and waits for that until ctx ends. There is
// no line: who asks first when one is back gets it.
func (l *Limiter) Wait(ctx context.Context) (Quota, error) {
	c := l.client.core
	for began := c.clock.now(); ; {
		left, err := l.Take(ctx)
		var limited *LimitedError
		if !errors.As(err, &limited) {
			return left, err
		}
		c.pause(ctx, limited.RetryAfter)
		if cause := c.over(ctx); cause != nil {
			return Quota{}, &WaitError{Name: l.name, Waited: c.clock.now() - began, Cause: cause, Last: err}
		}
	}
}

// Quota tells what is left, and takes nothing.
func (l *Limiter) Quota(ctx context.Context) (q Quota, err error) {
	err = l.edit(ctx, func(r driver.Record, now time.Time) (*driver.Record, error) {
		b, err := l.bucket(r, now)
		q = l.quota(b.full.Sub(now))
		return nil, err
	})
	return q, err
}

// Reset gives back all that was taken.
func (l *Limiter) Reset(ctx context.Context) error { return l.forget(ctx) }

// A bucket is what a limit remembers.
type bucket struct {
	FullAt int64  `json:"full_at,string"` // when all are back, in ns since 1970 by the store's clock: GCRA's theoretical arrival time
	By     string `json:"by"`             // which Take wrote it
	full   time.Time
}

// bucket reads a record. What is back already is of no account, and what lies
// further ahead than a whole limit was taken under a larger one, or before the
// store's clock was set back: neither may block for longer than a whole limit.
func (l *Limiter) bucket(r driver.Record, now time.Time) (b bucket, err error) {
	if r.Version != 0 {
		if err := json.Unmarshal(r.Value, &b); err != nil {
			return b, l.rejected("the record is not of a limit: %w", err)
		}
	}
	b.full = time.Unix(0, b.FullAt)
	if b.full.Before(now) {
		b.full = now
	}
	if most := now.Add(l.whole()); b.full.After(most) {
		b.full = most
	}
	return b, nil
}

// whole is how long it takes until all are back.
func (l *Limiter) whole() time.Duration { return time.Duration(l.n) * l.step }

// quota tells what is left when all are back in reset.
func (l *Limiter) quota(reset time.Duration) Quota {
	if l.step == 0 {
		return Quota{}
	}
	return Quota{Limit: l.n, Remaining: int((l.whole() - reset) / l.step), Reset: reset}
}
