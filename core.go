package dibs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/calls"
)

// A core is what a client shares with its siblings: the store, the clock, and
// the two goroutines that look after claims (keeper, undoer).
type core struct {
	store  driver.Store
	facts  driver.Facts
	clock  *clock
	minder *calls.Minder // bounds the calls to the store
	hooks  Hooks
	log    *slog.Logger
	keeper *keeper
	undoer *undoer

	closing chan struct{} // closed when Close begins: waits end
	closed  chan struct{} // closed when Close has ended
	once    sync.Once
	err     error // of Close; read after closed

	calls gate  // Lock, TryLock, Release under way
	crowd crowd // the names that others are likely to hold

	reigns reigns // of the elections that its clients have won

	stopFeed context.CancelFunc // ends the loss feed
	feed     chan struct{}      // closed when the loss feed has ended
}

func newCore(store driver.Store, hooks Hooks, log *slog.Logger) (*core, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &core{
		store:   store,
		facts:   store.Facts(),
		clock:   newClock(),
		minder:  calls.New(),
		hooks:   hooks,
		log:     log,
		calls:   gate{idle: make(chan struct{})},
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
		feed:    make(chan struct{}),
	}
	var ctx context.Context
	ctx, c.stopFeed = context.WithCancel(context.Background())
	c.keeper = newKeeper(c)
	if err := c.followLosses(ctx); err != nil {
		c.stopFeed()
		return nil, err
	}
	c.undoer = newUndoer(c)
	go c.keeper.run() // ends in keeper.stop
	go c.undoer.run() // ends in undoer.stop
	return c, nil
}

// followLosses hears of losses as the store sees them, if it can tell.
func (c *core) followLosses(ctx context.Context) error {
	feed, ok := c.store.(driver.LossFeed)
	if !ok {
		close(c.feed)
		return nil
	}
	losses, err := feed.Losses(ctx)
	switch {
	case err == nil:
	case driver.Certain(err): // it won't tell, for want of a right, say: renewals find out
		close(c.feed)
		return nil
	default:
		return err
	}
	go func() { // ends when stopFeed makes the store close the channel
		defer close(c.feed)
		for loss := range losses {
			c.keeper.refused(loss.ID, loss.Err)
		}
	}()
	return nil
}

// detached returns ctx, or what outlives it if it has already ended: the clean-up
// of a caller that was cancelled must not be cancelled with it. One that was given
// no ctx is done too, since a panic would leave the lock to be renewed for ever.
func detached(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return ctx
}

func (c *core) error(op, name string, err error) error {
	return &Error{Op: op, Name: name, Driver: c.facts.Driver, Err: err}
}

// close ends everything in the order in which things depend on each other:
// waits, which may still become leases; leases; what is to be taken back; the
// store.
func (c *core) close(ctx context.Context) error {
	c.once.Do(func() {
		defer close(c.closed)
		close(c.closing)
		if err := c.calls.shut(ctx); err != nil {
			c.err = errors.Join(c.err, fmt.Errorf("a call did not return: %w", err))
		}
		for _, l := range c.keeper.stop() {
			l.end(&LostError{Reason: ClientClosed, Err: ErrClosed})
			c.undoer.add(l.claim, l.tainted)
			if other, ok := c.keeper.pending(l); ok { // either of the two may be there
				c.undoer.add(other, c.clock.now())
			}
		}
		if left := c.undoer.stop(ctx); left != nil {
			c.err = errors.Join(c.err, fmt.Errorf("left to their TTL: %s", strings.Join(left, ", ")))
		}
		c.stopFeed()
		<-c.feed
		if err := c.store.Close(); err != nil {
			c.err = errors.Join(c.err, err)
		}
		if c.err != nil {
			c.err = c.error("close", "", c.err)
		}
	})
	<-c.closed
	return c.err
}

// A gate counts what is under way, and shuts.
type gate struct {
	n    atomic.Int64  // how many are inside; when it is shut, that many above the least number
	once sync.Once     // closes idle
	idle chan struct{} // closed when it is shut and nothing is inside
}

// isShut is what n is when the gate is shut and nothing is inside.
const isShut = math.MinInt64

// enter returns false if the gate is shut.
func (g *gate) enter() bool {
	if g.n.Add(1) > 0 {
		return true
	}
	g.leave()
	return false
}

func (g *gate) leave() {
	if g.n.Add(-1) == isShut {
		g.once.Do(func() { close(g.idle) })
	}
}

// shut lets nothing in any more, and waits until nothing is inside or ctx ends.
func (g *gate) shut(ctx context.Context) error {
	if g.n.Add(isShut) == isShut {
		g.once.Do(func() { close(g.idle) })
	}
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
