package redislock

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// Options are the settings of New. The zero value is the default of each.
type Options struct {
	Prefix  string // what all keys begin with; "": dibs
	Plain   bool   // share locks with other programs: see Plain
	Journal bool   // write every event to a stream; not in a cluster
}

// New returns a store that works through client, which may be of one server, of
// Sentinel or of a Cluster; o may be nil. It shares the client's connections, and
// Close leaves the client open.
//
// The store promises what one that was opened by URL does, as far as the client
// does its part: it has to send commands that write once only (rueidis's
// default), and a call may outlive its ctx while the client dials or its queue is
// full, which the store's own connections never let happen. So it waives law 9.
// The client's InitAddress must be of masters: what is read from a replica is old.
func New(client rueidis.Client, o *Options) (driver.Store, error) {
	if o == nil {
		o = &Options{}
	}
	c := config{prefix: o.Prefix, plain: o.Plain, journal: o.Journal}
	if c.prefix == "" {
		c.prefix = "dibs"
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if client.Mode() == rueidis.ClientModeCluster {
		if c.journal {
			return nil, errClusterJournal
		}
		s := newCluster(c)
		s.nodes, s.base.borrowed = ownNodes{client}, true
		return s, nil
	}
	s := newStore(c)
	s.link, s.borrowed, s.inbox.fleeting = newOwnWire(client), true, true
	if c.plain {
		return &Plain{s}, nil
	}
	return s, nil
}

// ownNodes is a cluster by a client of the user's.
type ownNodes struct{ client rueidis.Client }

func (o ownNodes) wire(int) wire { return newOwnWire(o.client) }

func (o ownNodes) masters() (all []wire) {
	for _, c := range o.client.Nodes() {
		w := newOwnWire(c)
		role, err := w.do(context.Background(), func(b rueidis.Builder) rueidis.Completed { return b.Role().Build() }).ToArray()
		if err == nil && len(role) > 0 {
			if word, _ := role[0].ToString(); word != "master" {
				continue
			}
		}
		all = append(all, w)
	}
	return all
}

func (ownNodes) close() {}

// ownWire sends everything through a client of the user's.
type ownWire struct{ c *conn }

func newOwnWire(client rueidis.Client) ownWire {
	return ownWire{&conn{client: client, lost: make(chan struct{})}}
}

func (w ownWire) do(ctx context.Context, build func(rueidis.Builder) rueidis.Completed) rueidis.RedisResult {
	return w.c.client.Do(ctx, build(w.c.client.B()))
}

func (w ownWire) eval(ctx context.Context, s *script, keys, args []string) rueidis.RedisResult {
	if w.c.client.Mode() == rueidis.ClientModeCluster {
		s = s.sharded
	}
	b := w.c.client.B()
	r := w.c.client.Do(ctx, b.Evalsha().Sha1(s.sha()).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
		r = w.c.client.Do(ctx, b.Eval().Script(s.text()).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return r
}

func (w ownWire) get(context.Context) (*conn, error) { return w.c, nil }

func (w ownWire) apart(context.Context) (*conn, error) { return w.c, nil }

func (w ownWire) options() rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{"the client's own"}}
}

func (w ownWire) close() {}
