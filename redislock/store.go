package redislock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// A Store is one client of a Redis server. All methods may be called by many
// goroutines at once. It is a driver.Watcher, Batcher, LossFeed, Lister, Revoker
// and Journal and has Records.
type Store struct {
	keys     keys
	link     wire
	inbox    *inbox
	asks     *desk // acquire.lua's
	backs    *desk // release.lua's
	senders  *senders
	journal  bool
	borrowed bool                  // the way to the server is the user's own client
	replicas int                   // how many have to confirm a grant
	spans    atomic.Pointer[spans] // those of the newest request
	waits    atomic.Pointer[waits] // and how it may wait

	end     sync.Once
	closed  chan struct{} // closed by Close
	closing func()        // what else Close does; nil: nothing
}

// furnish gives s what every store has.
func (s *Store) furnish() *Store {
	s.inbox = newInbox(s.keys)
	s.asks = &desk{store: s, script: acquireScript, width: 2, lone: 1}
	s.backs = &desk{store: s, script: releaseScript, width: 3}
	return s
}

// A wire is the way to the server that has a name: a link, or in a cluster
// whatever link leads to the slot's node.
type wire interface {
	do(ctx context.Context, build func(rueidis.Builder) rueidis.Completed) rueidis.RedisResult
	eval(ctx context.Context, s *script, keys, args []string) rueidis.RedisResult
	get(ctx context.Context) (*conn, error)
	apart(ctx context.Context) (*conn, error) // another connection, on which one may wait
	options() rueidis.ClientOption
	close()
}

// Facts tells what the store promises. In the plain layout it has mutexes alone
// and keeps no line.
func (s *Store) Facts() driver.Facts {
	f := driver.Facts{
		Driver:   "redis",
		Survival: driver.ByTTL,
		Modes:    driver.Exclusive | driver.Shared | driver.Counted,
		Fencing:  driver.AcrossRestart,
		Ordered:  true,
		HandOver: 2 * time.Second,
		Slack:    time.Millisecond, // keys live for whole ones
		MinTTL:   10 * time.Millisecond,
		MaxTTL:   8760 * time.Hour,
		Step:     time.Millisecond,
		MaxBatch: 1000,
	}
	if s.keys.plain {
		f.Modes, f.Ordered, f.HandOver = driver.Exclusive, false, 0
	}
	if s.borrowed {
		f.Waives = []driver.Waiver{{Law: 9, Why: "the client is the user's own: a call may outlive its ctx while that dials"}}
	}
	return f
}

// Close ends this client and its subscriptions; its claims and places stay until
// their time is up. Closing again does nothing.
func (s *Store) Close() error {
	s.end.Do(func() {
		close(s.closed)
		s.link.close()
		s.inbox.close()
		if s.closing != nil {
			s.closing()
		}
	})
	return nil
}

// enter begins a call: it tells whether there is any point in it.
func (s *Store) enter(ctx context.Context) error {
	if err := over(ctx); err != nil {
		return err
	}
	select {
	case <-s.closed:
		return errClosed
	default:
		return nil
	}
}

var errClosed = fmt.Errorf("redis: %w", driver.ErrClosed)

// eval runs a script about names; name is what an error is about.
func (s *Store) eval(ctx context.Context, sc *script, name string, keys, args []string) (rueidis.RedisMessage, error) {
	if err := s.enter(ctx); err != nil {
		return rueidis.RedisMessage{}, err
	}
	if s.keys.plain {
		sc = sc.plain
	}
	m, err := s.link.eval(ctx, sc, keys, args).ToMessage()
	if err != nil {
		return m, s.failed(ctx, name, err)
	}
	return m, nil
}

// evalAll is eval of a script that replies an array of n elements.
func (s *Store) evalAll(ctx context.Context, sc *script, name string, n int, keys, args []string) ([]rueidis.RedisMessage, error) {
	m, err := s.eval(ctx, sc, name, keys, args)
	if err != nil {
		return nil, err
	}
	all, err := m.ToArray()
	if err == nil && len(all) != n {
		err = errShort
	}
	return all, err
}

// failed is failed, but for a store that was closed meanwhile.
func (s *Store) failed(ctx context.Context, name string, err error) error {
	select {
	case <-s.closed:
		return errClosed
	default:
		return failed(ctx, name, err)
	}
}

// on appends to keys those of a script about names: the mark, the names, and then
// what is beside them.
func (s *Store) on(keys []string, names ...string) []string {
	keys = append(slices.Grow(keys, len(names)+2), s.keys.mark)
	for _, name := range names {
		keys = append(keys, s.keys.name(name))
	}
	return s.beside(keys, names...)
}

// beside appends to keys the journal, or what the plain layout has to names.
func (s *Store) beside(keys []string, names ...string) []string {
	switch {
	case s.journal:
		keys = append(keys, s.keys.journal)
	case s.keys.plain:
		keys = append(keys, names...)
	}
	return keys
}

// with appends to args what a script needs to know for the journal.
func (s *Store) with(name string, args ...string) []string {
	if s.journal {
		args = append(args, name)
	}
	return args
}

func (s *Store) withAll(names, args []string) []string {
	if s.journal {
		args = append(args, names...)
	}
	return args
}
