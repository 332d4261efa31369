package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

// A Redlock is a client of a quorum: several Redis servers that know nothing of
// each other, of which a majority has to agree to a grant. Its tokens grow
// strictly, without any assumption about clocks, as long as the nodes that vote
// keep their memory; a node that lost it does not vote until it is readmitted
// (see RedlockReadmit). The protocol is package internal/quorum's.
//
// It grants exclusive claims only: with three nodes and a capacity of two, three
// holders would have a majority each. All methods may be called by many
// goroutines at once.
type Redlock struct {
	nodes  []*member
	keys   quorumKeys
	client string        // tells this client's attempts from another's
	number atomic.Uint64 // of the last attempt
	tried  atomic.Uint64 // attempts to get a claim
	second atomic.Uint64 // how many of them took a second round trip
	owed   *owed

	life   context.Context // ends with Close: it is the store's life
	end    context.CancelFunc
	work   sync.WaitGroup // the nodes' and what is owed
	mu     sync.Mutex     // guards closed, against work and the nodes' queues
	closed bool
}

// redlockFacts are what a quorum promises.
var redlockFacts = driver.Facts{
	Driver:   "redlock",
	Survival: driver.ByTTL,
	Modes:    driver.Exclusive,
	Fencing:  driver.AcrossFailover,
	MinTTL:   250 * time.Millisecond,
	MaxTTL:   24 * time.Hour,
	Step:     time.Millisecond,
	MaxBatch: 1000,
	Waives: []driver.Waiver{
		{Law: 21, Why: "a claim has one mode, and so nothing to convert to"},
		{Law: 23, Why: "no node knows who came first on all: there is no line, and who asks first after a release gets in"},
		{Law: 24, Why: "there is no line"},
		{Law: 25, Why: "there is no line"},
		{Law: 26, Why: "there is no line"},
		{Law: 27, Why: "there is no line"},
		{Law: 29, Why: "nothing is handed over"},
	},
}

// openRedlock connects to the nodes. It fails if no majority can be reached and
// may vote, and if what the nodes say of each other is not what the URL says.
func openRedlock(ctx context.Context, c quorumConfig) (*Redlock, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	s := &Redlock{keys: c.keys, client: rand.Text()}
	s.life, s.end = context.WithCancel(context.Background())
	s.owed = newOwed(s)
	s.nodes = members(s.life, c.nodes, c.keys.node)
	for _, n := range s.nodes {
		s.work.Go(n.serve) // ends with the store
	}
	if err := s.assemble(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// straggle is how long opening waits for the other nodes when a majority is there.
const straggle = 250 * time.Millisecond

// assemble waits for a majority.
func (s *Redlock) assemble(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(s.nodes))
	for _, n := range s.nodes {
		go func() { // ends with the node's first dial, or with ctx
			_, err := n.conn(ctx)
			answers <- err
		}()
	}
	var (
		errs []error
		late <-chan time.Time
		q    = quorum.Majority(len(s.nodes))
		good int
	)
	for good+len(errs) < len(s.nodes) {
		select {
		case err := <-answers:
			if errors.Is(err, driver.ErrRejected) && distrust(err) == "" { // a certificate that ran out is one node's
				return err
			}
			if err != nil {
				errs = append(errs, err)
			} else if good++; good == q {
				late = time.After(straggle)
			}
		case <-late:
			return nil
		case <-ctx.Done():
			return over(ctx)
		}
	}
	if good < q {
		if mute := count(errs, errNoVote); mute > len(s.nodes)-q {
			return driver.Rejectedf("", "redlock: %d of %d nodes do not vote: %w", mute, len(s.nodes), errors.Join(errs...))
		}
		if refused := count(errs, driver.ErrRejected); refused > 0 && refused <= len(s.nodes)-q {
			return fmt.Errorf("redlock: %d of %d nodes can be asked, and a majority is %d: %s", good, len(s.nodes), q, join(errs))
		}
		return fmt.Errorf("redlock: %d of %d nodes can be asked, and a majority is %d: %w", good, len(s.nodes), q, errors.Join(errs...))
	}
	return nil
}

// count is how many of errs are target.
func count(errs []error, target error) (n int) {
	for _, err := range errs {
		if errors.Is(err, target) {
			n++
		}
	}
	return n
}

// Facts tells what the store promises.
func (s *Redlock) Facts() driver.Facts { return redlockFacts }

// Rounds tells how often this client has asked for a claim, and how often that took
// a second round trip because the nodes' counters differed: it takes one where they
// agree.
func (s *Redlock) Rounds() (asked, second uint64) { return s.tried.Load(), s.second.Load() }

// Close ends this client; its claims stay until their time is up, and so does what
// a node may still make of a request that it never answered. Closing again does
// nothing.
func (s *Redlock) Close() error {
	s.mu.Lock()
	for _, n := range s.nodes {
		if !s.closed {
			close(n.queue)
		}
	}
	s.closed = true
	s.mu.Unlock()
	s.end()
	for _, n := range s.nodes {
		n.link.close()
	}
	s.owed.close()
	s.work.Wait()
	return nil
}

var errRedlockClosed = fmt.Errorf("redlock: %w", driver.ErrClosed)

// enter begins a call: it tells whether there is any point in it.
func (s *Redlock) enter(ctx context.Context) error {
	if err := over(ctx); err != nil {
		return err
	}
	if s.life.Err() != nil {
		return errRedlockClosed
	}
	return nil
}

// background runs f, which has to be bounded, unless the store is closed.
func (s *Redlock) background(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(f)
	}
	return !s.closed
}

// check is driver.Claim's Check, and refuses what a quorum can't do.
func (s *Redlock) check(c driver.Claim) (driver.Claim, error) {
	c, err := c.Check(redlockFacts)
	if err == nil && s.keys.plain && strings.HasPrefix(c.Name, s.keys.space+":") {
		err = ownKey(c.Name, s.keys.space)
	}
	if err == nil && c.From != "" {
		err = driver.Rejectedf(c.Name, "%w", driver.Unsupportedf("a quorum converts no claims"))
	}
	return c, err
}

// patience is how long a node may take to answer about a claim: far less than most
// claims live, so that nodes that hang cost a grant little of its trust, and enough
// for a node that is merely slow.
func patience(ttl time.Duration) time.Duration {
	return min(max(ttl/8, 500*time.Millisecond), 2*time.Second)
}

// quorumKeys makes the keys of a quorum's nodes. They hold nothing else that is
// in one slot: a node is a server by itself.
type quorumKeys struct {
	space       string // the prefix of the URL
	every       string // what the keys of the quorum begin with, but those of other programs
	prefix      string // of names
	node, names string
	plain       bool
}

func newQuorumKeys(prefix string, plain bool) quorumKeys {
	k := quorumKeys{space: prefix, every: prefix + ":redlock:", plain: plain}
	k.node, k.names, k.prefix = k.every+"node", k.every+"names", k.every+"name:"
	if plain {
		k.prefix = k.every + "plain:"
	}
	return k
}

// of is the keys of a script about names.
func (k quorumKeys) of(names ...string) []string {
	keys := append(make([]string, 0, 2+2*len(names)), k.node, k.names)
	for _, name := range names {
		keys = append(keys, k.prefix+"{"+escape(name)+"}")
	}
	if k.plain {
		keys = append(keys, names...)
	}
	return keys
}
