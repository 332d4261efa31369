package dibs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/dibslock/dibs/driver"
)

// A Locker asks for one kind of claim on one name. It holds nothing itself: each
// acquisition is a Lease of its own, so a Locker may be shared, kept or made
// anew at will, and two goroutines that lock the same Locker exclude each other.
type Locker struct {
	client   *Client
	name     string
	units    int
	capacity int
	err      error     // the arguments can't be right
	all      []*Locker // the names of an All, each once, in their order; nil: there is just one
}

// Mutex excludes everyone else on name.
func (c *Client) Mutex(name string) *Locker {
	return &Locker{client: c, name: name, units: 1, capacity: 1}
}

// Writer is Mutex: it excludes readers too. It exists to be read beside Reader.
func (c *Client) Writer(name string) *Locker { return c.Mutex(name) }

// Reader shares name with other readers.
func (c *Client) Reader(name string) *Locker {
	return &Locker{client: c, name: name, units: 1, capacity: driver.Unlimited}
}

// Semaphore takes units of capacity on name. While holders disagree on the
// capacity, as in a rolling change, the smallest one counts. A capacity of 1 is
// a Mutex.
func (c *Client) Semaphore(name string, capacity, units int) *Locker {
	l := &Locker{client: c, name: name, units: units, capacity: capacity}
	if capacity > driver.MaxUnits {
		l.err = driver.Rejectedf(name, "capacity %d: at most %d", capacity, driver.MaxUnits)
	}
	return l
}

// Name returns what l locks.
func (l *Locker) Name() string { return l.name }

// Lock waits for the lock. ctx bounds the wait only, never the holding: when it
// ends, or the client is closed, Lock returns a *WaitError at once and no claim
// and no place stays behind. A store that gives no clear answer for one TTL is
// an ErrUnknown (unless Settings.StoreDown says to wait): it never looks like
// contention. The lease must be released.
func (l *Locker) Lock(ctx context.Context) (*Lease, error) { return l.acquire(ctx, true) }

// TryLock asks once and does not wait: ErrHeld if another is in the way, with
// the holder in the *HeldError as far as the store knows it. An unclear answer
// is an ErrUnknown, and is taken back in the background.
func (l *Locker) TryLock(ctx context.Context) (*Lease, error) { return l.acquire(ctx, false) }

// Do waits for the lock, runs fn, and releases, also if fn panics. fn's ctx is
// ctx, and ends with a *LostError as its cause if the lock is lost. The error is
// fn's own, joined with the *LostError if the lock was lost before fn returned.
// A release that failed is not an error of the work: the claim ends by its TTL,
// and Hooks.Released tells of it.
func (l *Locker) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.do(ctx, fn, true)
}

// TryDo is Do without waiting: ErrHeld means that another instance is at it.
func (l *Locker) TryDo(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.do(ctx, fn, false)
}

func (l *Locker) do(ctx context.Context, fn func(ctx context.Context) error, wait bool) error {
	return l.under(ctx, wait, func(ctx context.Context, _ *Lease) error { return fn(ctx) })
}

// under runs fn under a lease of its own.
func (l *Locker) under(ctx context.Context, wait bool, fn func(ctx context.Context, lease *Lease) error) (err error) {
	lease, err := l.acquire(ctx, wait)
	if err != nil {
		return err
	}
	bound, stop := lease.Bind(ctx)
	defer stop()
	defer func() {
		err = lease.joined(err) // before the release, which is an end too
		_ = lease.Release(ctx)
	}()
	return fn(bound, lease)
}

// joined returns the error of work under l, joined with the loss of l if it was
// lost before the work ended.
func (l *Lease) joined(err error) error {
	if lost := l.Check(); lost != nil && !errors.Is(err, lost) {
		return errors.Join(err, lost)
	}
	return err
}

// claim returns a fresh claim of l's kind: every attempt has an ID of its own.
func (l *Locker) claim(wait bool) (driver.Claim, error) {
	s := l.client.set
	switch {
	case l.client.err != nil:
		return driver.Claim{}, l.client.err
	case l.err != nil:
		return driver.Claim{}, l.err
	}
	c := driver.Claim{
		Name:     l.name,
		ID:       newID(),
		Units:    l.units,
		Capacity: l.capacity,
		TTL:      s.TTL,
		Keep:     s.Keep,
		Delay:    s.Delay,
		Barging:  s.Order == Barging,
		Note:     s.Note,
	}
	if wait && l.client.core.facts.Ordered {
		c.Patience = s.Patience
	}
	c, err := c.Check(l.client.core.facts)
	if err != nil {
		return c, fmt.Errorf("dibs: %w", err)
	}
	return c, nil
}

// newID returns 128 random bits and a bit.
func newID() string { return rand.Text() }
