package memlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Options are the choices of a new memory. The zero value is the default.
type Options struct {
	// Journal turns the event log on: see driver.Journal. Without it Events
	// answers errors.ErrUnsupported.
	Journal bool
	// Modes are the modes that the store grants; 0: all. Fewer make it stand in
	// for a store that lacks some.
	Modes driver.Mode
	// Mark is the high-water mark to begin with: every token is larger.
	Mark uint64
}

// A Store is one client of a memory. All methods may be called by many
// goroutines at once. It is a driver.Watcher, Batcher, LossFeed, Lister, Revoker
// and Journal and has Records.
type Store struct {
	m      *memory
	closed bool                   // guarded by m.mu
	feeds  map[*feed]struct{}     // guarded by m.mu
	subs   map[subscriber]*signal // guarded by m.mu; those of m.subs that are this client's
}

// memory is what the clients of one memory share.
type memory struct {
	facts driver.Facts

	mu      sync.Mutex // guards all below
	names   map[string]*name
	mark    uint64 // the largest number that a forgotten name has given out
	subs    map[subscriber]*signal
	records map[string]*record
	version uint64 // the newest version of any record
	journal bool
	events  []driver.Event
	seq     uint64 // the newest event's
}

// New returns the first client of a new, empty memory.
func New(o Options) *Store {
	m := &memory{
		facts: driver.Facts{
			Driver:   "mem",
			Survival: driver.ByTTL,
			Modes:    driver.Exclusive | driver.Shared | driver.Counted,
			Fencing:  driver.WhileUp,
			Ordered:  true,
			HandOver: 2 * time.Second,
			MinTTL:   10 * time.Millisecond,
			MaxTTL:   8760 * time.Hour,
			Step:     time.Millisecond,
			MaxBatch: 10_000,
		},
		names:   make(map[string]*name),
		mark:    o.Mark,
		subs:    make(map[subscriber]*signal),
		records: make(map[string]*record),
		journal: o.Journal,
	}
	if o.Modes != 0 {
		m.facts.Modes = o.Modes
	}
	return m.client()
}

// Client returns another client of the same memory, as another process would
// have. It is closed on its own.
func (s *Store) Client() *Store { return s.m.client() }

func (m *memory) client() *Store {
	return &Store{m: m, feeds: make(map[*feed]struct{}), subs: make(map[subscriber]*signal)}
}

// Facts tells what the store promises.
func (s *Store) Facts() driver.Facts { return s.m.facts }

// Close ends this client and its subscriptions; its claims and places stay until
// their time is up. Closing again does nothing.
func (s *Store) Close() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.closed = true
	for sub, g := range s.subs {
		g.send(driver.Signal{}) // the waiter asks, and hears ErrClosed
		s.unsubscribeLocked(sub, g)
	}
	for f := range s.feeds {
		s.endFeedLocked(f)
	}
	return nil
}

// enter begins a call: it locks the memory, which the caller unlocks, unless it
// returns an error.
func (s *Store) enter(ctx context.Context) error {
	if err := over(ctx); err != nil {
		return err
	}
	s.m.mu.Lock()
	if s.closed {
		s.m.mu.Unlock()
		return fmt.Errorf("mem: %w", driver.ErrClosed)
	}
	return nil
}

// over returns an unknown error that is the cause of ctx's end, if it has ended.
// A cause that would be a certain answer is told in words only.
func over(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if driver.Certain(cause) {
		return fmt.Errorf("mem: %w: %v", ctx.Err(), cause)
	}
	return fmt.Errorf("mem: %w", cause)
}
