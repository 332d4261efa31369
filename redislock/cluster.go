package redislock

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

func init() {
	driver.Register("redis-cluster", openCluster)
	driver.Register("rediss-cluster", openCluster)
}

// A Cluster is a client of a Redis Cluster. All keys of a name are in one slot,
// and each slot is a store by itself: with a high-water mark of its own, and a
// channel on which this client hears of its places there. Claims are asked for,
// renewed and given back on the master that has the slot, never on a replica; when
// the slot moves, or another node takes the place of one that died, that is found
// out.
//
// It does what Store does, but for what would need several slots in one step or on
// one connection: it is no driver.Batcher, LossFeed or Journal.
type Cluster struct {
	base  *Store // keys, and whether it is closed
	nodes interface {
		wire(slot int) wire
		masters() []wire
		close()
	}

	mu    sync.Mutex // guards slots
	slots map[int]*Store
}

// openCluster opens
//
//	redis-cluster://user:password@host1:6379,host2,host3
//
// of which one node has to answer. The parameters are those of redis://.
func openCluster(ctx context.Context, u *url.URL) (driver.Store, error) {
	configs, err := parseCluster(u)
	if err == nil {
		err = over(ctx)
	}
	if err != nil {
		return nil, err
	}
	c := configs[0]
	n := newNodes(c.client, configs)
	if err := n.refresh(ctx); err != nil {
		n.close()
		return nil, failed(ctx, "", err)
	}
	n.start()
	s := newCluster(c)
	s.nodes = n
	return s, nil
}

// parseCluster reads a URL as one for each of the nodes that it lists.
func parseCluster(u *url.URL) ([]config, error) {
	configs, err := parseHosts(u, "cluster", "6379")
	switch {
	case err != nil:
		return nil, err
	case configs[0].client.SelectDB != 0:
		return nil, driver.Rejectedf("", "the store's URL: a cluster has no database but 0")
	case configs[0].journal:
		return nil, errClusterJournal
	}
	return configs, nil
}

var errClusterJournal = driver.Rejectedf("", "a cluster has no journal: it would be in one slot, and what it tells of in others")

// newCluster makes a client that has no way to the nodes yet.
func newCluster(c config) *Cluster {
	return &Cluster{base: newStore(c), slots: make(map[int]*Store)}
}

// Facts tells what the store promises.
func (c *Cluster) Facts() driver.Facts {
	f := c.base.Facts()
	f.Driver = "redis-cluster"
	return f
}

// Close is Store.Close.
func (c *Cluster) Close() error {
	c.base.end.Do(func() {
		close(c.base.closed)
		c.nodes.close()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.slots {
			s.inbox.close()
		}
	})
	return nil
}

// of is the store of the slot that key is in.
func (c *Cluster) of(key string) *Store {
	n := slot(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[n]
	if s == nil {
		s = &Store{keys: c.base.keys, senders: c.base.senders, closed: c.base.closed, link: c.nodes.wire(n), borrowed: c.base.borrowed, replicas: c.base.replicas}
		s.keys.mark += ":{" + tag(n) + "}"
		s.furnish()
		s.inbox.channel += ":{" + tag(n) + "}"
		s.inbox.sharded, s.inbox.fleeting = true, true
		c.slots[n] = s
	}
	return s
}

func (c *Cluster) named(name string) *Store { return c.of(c.base.keys.name(name)) }

// Acquire is Store.Acquire.
func (c *Cluster) Acquire(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
	return c.named(claim.Name).Acquire(ctx, claim)
}

// Release is Store.Release.
func (c *Cluster) Release(ctx context.Context, claim driver.Claim) error {
	return c.named(claim.Name).Release(ctx, claim)
}

// Revoke is Store.Revoke.
func (c *Cluster) Revoke(ctx context.Context, r driver.Revocation) error {
	return c.named(r.Name).Revoke(ctx, r)
}

// Watch is Store.Watch.
func (c *Cluster) Watch(ctx context.Context, claim driver.Claim) (<-chan driver.Signal, func(), error) {
	s := c.named(claim.Name)
	if s.keys.plain {
		return nil, nil, driver.Unsupportedf("the plain layout of a cluster signals nothing")
	}
	return s.Watch(ctx, claim)
}

// Renew proves claims and refreshes places: one script for each slot, all at once,
// pipelined on one connection to each node. A node that does not answer spoils no
// claim of another.
func (c *Cluster) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if most := c.Facts().MaxBatch; len(cs) > most {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), most)
	}
	if err := c.base.enter(ctx); err != nil {
		return allUnknown(len(cs), err), err
	}
	groups := make(map[*Store][]int)
	for i, claim := range cs {
		s := c.named(claim.Name)
		groups[s] = append(groups[s], i)
	}
	var (
		proofs = make([]driver.Proof, len(cs))
		mu     sync.Mutex // guards good and whole
		good   bool
		whole  error
		wg     sync.WaitGroup
	)
	for s, at := range groups {
		wg.Go(func() { // ends with its call, and so with ctx
			group := make([]driver.Claim, len(at))
			for i, j := range at {
				group[i] = cs[j]
			}
			ps, err := s.Renew(ctx, group)
			for i, j := range at {
				if len(ps) == len(at) {
					proofs[j] = ps[i]
				} else {
					proofs[j].Err = doubt(err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				good = true
			} else {
				whole = err
			}
		})
	}
	wg.Wait()
	if good {
		whole = nil
	}
	return proofs, whole
}

// List is Store.List, of all masters.
func (c *Cluster) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		names, err := c.scan(ctx, c.base.keys.names(prefix), c.base.keys.nameOf)
		if err != nil {
			yield(driver.Holder{}, err)
			return
		}
		if c.base.keys.plain && !slices.Contains(names, prefix) && !c.named(prefix).listStranger(ctx, prefix, yield) {
			return
		}
		var broken []error
		for _, name := range names {
			if !c.named(name).listNames(ctx, []string{name}, yield, &broken) {
				return
			}
		}
		tellBroken(broken, yield)
	}
}

// scan is Store.scan, of all masters.
func (c *Cluster) scan(ctx context.Context, pattern string, of func(key string) (string, bool)) ([]string, error) {
	var all []string
	for _, l := range c.nodes.masters() {
		some, err := c.base.scan(ctx, l, pattern, of)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Get is Store.Get.
func (c *Cluster) Get(ctx context.Context, key string) (driver.Record, time.Time, error) {
	return c.of(c.base.keys.record(key)).Get(ctx, key)
}

// Put is Store.Put.
func (c *Cluster) Put(ctx context.Context, r driver.Record) (uint64, error) {
	return c.of(c.base.keys.record(r.Key)).Put(ctx, r)
}

// Delete is Store.Delete.
func (c *Cluster) Delete(ctx context.Context, key string, version uint64) error {
	return c.of(c.base.keys.record(key)).Delete(ctx, key, version)
}

// ListRecords is Store.ListRecords, of all masters.
func (c *Cluster) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.Record, error] {
	return func(yield func(driver.Record, error) bool) {
		found, err := c.scan(ctx, c.base.keys.records(prefix), c.base.keys.recordOf)
		if err != nil {
			yield(driver.Record{}, err)
			return
		}
		for _, key := range found {
			r, _, err := c.Get(ctx, key)
			if err != nil {
				yield(driver.Record{}, err)
				return
			}
			if r.Version != 0 && !yield(r, nil) {
				return
			}
		}
	}
}

var errNoNode = errors.New("no node of the cluster serves the slot")
