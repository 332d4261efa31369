package redislock

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// Hooks for tests.

// Reply is the error for an error reply.
func Reply(text string) error { return reply("name", text) }

// Slot is the hash slot of a key.
func Slot(key string) int { return slot(key) }

// Keys are the keys of a name: of its state, and in the plain layout of the lock.
func Keys(name string, plain bool) []string {
	k := newKeys("dibs", plain)
	if plain {
		return []string{k.name(name), name}
	}
	return []string{k.name(name)}
}

// NameOf is the name whose state is at key.
func NameOf(key string, plain bool) (string, bool) { return newKeys("dibs", plain).nameOf(key) }

// MaxUnder is how many calls may be under way on a connection.
const MaxUnder = maxUnder

// MaxInBatch is how many claims one call asks about.
const MaxInBatch = maxInBatch

// Crowded tells whether the store's present connections spare the processors: one,
// or one for each node.
func Crowded(ctx context.Context, s driver.Store) (all []bool, err error) {
	var links []wire
	if q, ok := s.(*Redlock); ok {
		for _, m := range q.nodes {
			links = append(links, m.link)
		}
	} else {
		links = append(links, storeOf(s).link)
	}
	for _, l := range links {
		c, err := l.get(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, c.crowded())
	}
	return all, nil
}

// Lanes is how many calls of one script are under way at once.
const Lanes = lanes

// Hold holds up the calls that run scripts: each tells on sent how many claims it
// is about, and goes on when let is closed.
func Hold(s driver.Store) (sent <-chan int, let chan struct{}) {
	st := storeOf(s)
	h := &holding{wire: st.link, sent: make(chan int, 1000), let: make(chan struct{})}
	st.link = h
	return h.sent, h.let
}

func storeOf(s driver.Store) *Store {
	if p, ok := s.(*Plain); ok {
		return p.s
	}
	return s.(*Store)
}

type holding struct {
	wire
	sent chan int
	let  chan struct{}
}

func (h *holding) eval(ctx context.Context, s *script, keys, args []string) rueidis.RedisResult {
	n, _ := strconv.Atoi(args[0])
	h.sent <- n
	select {
	case <-h.let:
	case <-ctx.Done():
		return rueidis.NewErrorResult(ctx.Err())
	}
	return h.wire.eval(ctx, s, keys, args)
}

// InLine is how many calls wait for others.
func InLine(s driver.Store) (n int) {
	for _, d := range []*desk{storeOf(s).asks, storeOf(s).backs} {
		d.mu.Lock()
		n += len(d.line)
		d.mu.Unlock()
	}
	return n
}

// OpenAt opens a store whose server is where locate says.
func OpenAt(ctx context.Context, rawURL string, locate func(context.Context) (string, error)) (driver.Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	c, err := parse(u)
	if err != nil {
		return nil, err
	}
	c.locate = locate
	return open(ctx, c)
}

// ClusterKeys are all keys that a script about a name may touch in a cluster, and
// the channel that it may publish to.
func ClusterKeys(name string, plain bool) []string {
	c := &Cluster{base: newStore(config{prefix: "dibs", plain: plain}), nodes: ownNodes{}, slots: make(map[int]*Store)}
	s := c.named(name)
	keys := append(s.on(nil, name), s.inbox.channel)
	if !plain {
		keys = append(keys, s.keys.name(name)+":l", s.keys.name(name)+":p")
	}
	return keys
}

// HostsOf are the addresses that a URL of several hosts lists.
func HostsOf(u *url.URL) (string, error) {
	var all []string
	if strings.HasPrefix(u.Scheme, "redlock") {
		c, err := parseRedlock(u)
		for _, n := range c.nodes {
			all = append(all, n.InitAddress[0])
		}
		return strings.Join(all, " "), err
	}
	var configs []config
	var err error
	if strings.HasSuffix(u.Scheme, "sentinel") {
		configs, _, err = parseSentinel(u)
	} else {
		configs, err = parseCluster(u)
	}
	for _, c := range configs {
		all = append(all, c.client.InitAddress[0])
	}
	return strings.Join(all, " "), err
}

// Answering is how many nodes of a quorum answer a client.
func Answering(ctx context.Context, s any) (n int) {
	for _, m := range s.(*Redlock).nodes {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		if m.link.do(ctx, func(b rueidis.Builder) rueidis.Completed { return b.Ping().Build() }).Error() == nil {
			n++
		}
		cancel()
	}
	return n
}

// Owed is how many requests a client still has to see settled.
func Owed(s any) (n int) {
	o := s.(*Redlock).owed
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, all := range o.due {
		n += len(all)
	}
	return n + len(o.attempts)
}

// What a node of a quorum runs, by name.
var QuorumScripts = map[string]string{"ask": askScript.text(), "settle": settleScript.text(), "renew": proveScript.text(), "release": giveScript.text(), "revoke": takeScript.text()}

// PackQuorum packs an exclusive claim as those scripts read it.
func PackQuorum(id string, fence uint64, ttl time.Duration, client string, number uint64) (who, what string) {
	s := &Redlock{client: client}
	return s.packQuorum(driver.Claim{ID: id, TTL: ttl, Units: 1, Capacity: 1}, fence, number)
}
