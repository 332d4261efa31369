package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	mapEvery  = 5 * time.Second        // the nodes are asked who has which slot
	mapPause  = 50 * time.Millisecond  // between that and the next time, if it seems to be wrong
	mapGrace  = 500 * time.Millisecond // how long the others may take when one has answered
	redirects = 5                      // how often one call is sent on
)

// nodes knows which node of a cluster has which slot, and keeps a link to each
// master.
type nodes struct {
	opt   rueidis.ClientOption
	table atomic.Pointer[[slots]*link]
	wrong chan struct{} // capacity 1: a call has found that the table is old
	end   context.CancelFunc
	ctx   context.Context // ends with close
	work  sync.WaitGroup  // start's goroutine, and links that are being closed

	mu    sync.Mutex // guards what follows
	links map[string]*link
	seeds map[string]bool // addresses whose links stay
}

func newNodes(opt rueidis.ClientOption, seeds []config) *nodes {
	n := &nodes{opt: opt, wrong: make(chan struct{}, 1), links: make(map[string]*link), seeds: make(map[string]bool)}
	n.ctx, n.end = context.WithCancel(context.Background())
	n.table.Store(new([slots]*link))
	for _, s := range seeds {
		addr := s.client.InitAddress[0]
		n.seeds[addr] = true
		n.linkLocked(addr)
	}
	return n
}

// start keeps the table up to date until close.
func (n *nodes) start() {
	n.work.Go(func() { // ends with close
		for n.ctx.Err() == nil {
			select {
			case <-n.wrong:
			case <-time.After(mapEvery):
			case <-n.ctx.Done():
				return
			}
			_ = n.refresh(n.ctx) // calls go on with what there is, and find out for themselves
			select {
			case <-time.After(mapPause):
			case <-n.ctx.Done():
			}
		}
	})
}

// linkLocked is the link to a node.
func (n *nodes) linkLocked(addr string) *link {
	l := n.links[addr]
	if l == nil {
		l = startLink(at(n.opt, addr), func(context.Context, *conn) error { return nil })
		n.links[addr] = l
	}
	return l
}

// doubt has the table looked at again.
func (n *nodes) doubt() {
	select {
	case n.wrong <- struct{}{}:
	default:
	}
}

// view is what one node says of the cluster.
type view struct {
	epoch  uint64
	ok     bool // it takes part in the majority
	ranges []slotRange
	err    error
}

type slotRange struct {
	from, to int
	addr     string // of the master
}

// refresh asks all nodes that are known, and believes the one with the newest
// epoch among those that see a majority.
func (n *nodes) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dialPatience, errSilent)
	defer cancel()
	n.mu.Lock()
	answers, count := make(chan view, len(n.links)), len(n.links)
	for _, l := range n.links {
		go func() { answers <- l.view(ctx) }() // ends with ctx
	}
	n.mu.Unlock()
	var (
		best view
		errs []error
	)
	collect(answers, count, mapGrace, func(v view) (good, enough bool) {
		if v.err != nil {
			errs = append(errs, v.err)
			return false, false
		}
		newer := v.ok && !best.ok || v.ok == best.ok && v.epoch > best.epoch
		if best.ranges == nil || newer {
			best = v
		}
		return true, false
	})
	if best.ranges == nil {
		return fmt.Errorf("no node of the cluster tells who has which slot: %w", errors.Join(errs...))
	}
	n.apply(best)
	return nil
}

// view asks a node.
func (l *link) view(ctx context.Context) (v view) {
	c, err := l.ready(ctx)
	if err != nil {
		return view{err: err}
	}
	info, err := c.do(ctx, c.client.B().ClusterInfo().Build()).ToString()
	if err != nil {
		return view{err: err}
	}
	v.ok = strings.Contains(info, "cluster_state:ok")
	if _, rest, found := strings.Cut(info, "cluster_current_epoch:"); found {
		digits, _, _ := strings.Cut(rest, "\r")
		v.epoch, _ = strconv.ParseUint(digits, 10, 64)
	}
	all, err := c.do(ctx, c.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return view{err: err}
	}
	host, _, _ := net.SplitHostPort(c.addr)
	for _, m := range all {
		r, err := readRange(m, host)
		if err != nil {
			return view{err: err}
		}
		v.ranges = append(v.ranges, r)
	}
	return v
}

// readRange reads one element of CLUSTER SLOTS. A node that does not know its own
// host is at the one that was asked.
func readRange(m rueidis.RedisMessage, host string) (r slotRange, err error) {
	row, err := m.ToArray()
	if err != nil || len(row) < 3 {
		return r, errors.Join(errShort, err)
	}
	from, err1 := row[0].AsInt64()
	to, err2 := row[1].AsInt64()
	master, err3 := row[2].ToArray()
	if err := errors.Join(err1, err2, err3); err != nil || len(master) < 2 || from < 0 || from > to || to >= slots {
		return r, errors.Join(errShort, err)
	}
	if name, err := master[0].ToString(); err == nil && name != "" && name != "?" {
		host = name
	}
	port, err := master[1].AsInt64()
	return slotRange{int(from), int(to), net.JoinHostPort(host, strconv.FormatInt(port, 10))}, err
}

// apply makes v the table, and closes the links to nodes that have no slots.
func (n *nodes) apply(v view) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	used := make(map[string]bool)
	table := new([slots]*link)
	for _, r := range v.ranges {
		used[r.addr] = true
		l := n.linkLocked(r.addr)
		for i := r.from; i <= r.to; i++ {
			table[i] = l
		}
	}
	n.table.Store(table)
	for addr, l := range n.links {
		if !used[addr] && !n.seeds[addr] {
			delete(n.links, addr)
			n.work.Go(l.close)
		}
	}
}

// move notes that a slot is on another node.
func (n *nodes) move(slot int, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	table := *n.table.Load()
	table[slot] = n.linkLocked(addr)
	n.table.Store(&table)
}

// node is the link to a node, for one call.
func (n *nodes) node(addr string) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.linkLocked(addr)
}

// masters are the links to all nodes that have slots.
func (n *nodes) masters() (all []wire) {
	seen := make(map[*link]bool)
	for _, l := range n.table.Load() {
		if l != nil && !seen[l] {
			seen[l] = true
			all = append(all, l)
		}
	}
	return all
}

func (n *nodes) wire(slot int) wire { return slotWire{n, slot} }

func (n *nodes) close() {
	n.end()
	n.mu.Lock()
	all := n.links
	n.links = make(map[string]*link)
	n.mu.Unlock()
	for _, l := range all {
		n.work.Go(l.close)
	}
	n.work.Wait()
}

// A slotWire is the way to the node that has a slot.
type slotWire struct {
	nodes *nodes
	slot  int
}

func (w slotWire) options() rueidis.ClientOption { return w.nodes.opt }

func (w slotWire) close() {}

func (w slotWire) get(ctx context.Context) (*conn, error) { return w.by(ctx, (*link).ready) }

func (w slotWire) apart(ctx context.Context) (*conn, error) { return w.by(ctx, (*link).apart) }

func (w slotWire) by(ctx context.Context, how func(*link, context.Context) (*conn, error)) (*conn, error) {
	l := w.nodes.table.Load()[w.slot]
	if l == nil {
		w.nodes.doubt()
		return nil, errNoNode
	}
	c, err := how(l, ctx)
	if err != nil {
		w.nodes.doubt()
	}
	return c, err
}

func (w slotWire) do(ctx context.Context, build func(rueidis.Builder) rueidis.Completed) rueidis.RedisResult {
	c, err := w.get(ctx)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return c.do(ctx, build(c.client.B()))
}

// eval runs s on the slot's node, and follows it if it says that the slot is
// elsewhere: then nothing was done there. Whatever else goes wrong is looked into
// in the background, and the caller asks again.
func (w slotWire) eval(ctx context.Context, s *script, keys, args []string) (r rueidis.RedisResult) {
	if s.sharded != nil {
		s = s.sharded
	}
	for range redirects {
		c, err := w.get(ctx)
		if err != nil {
			return rueidis.NewErrorResult(err)
		}
		r = c.eval(ctx, s, keys, args)
		e, replied := rueidis.IsRedisErr(r.Error())
		if !replied {
			if r.Error() != nil {
				w.nodes.doubt()
			}
			return r
		}
		word, rest, _ := strings.Cut(e.Error(), " ")
		_, addr, _ := strings.Cut(rest, " ")
		switch word {
		case "MOVED":
			w.nodes.move(w.slot, whole(addr, c.addr))
			w.nodes.doubt()
		case "ASK":
			return w.asking(ctx, w.nodes.node(whole(addr, c.addr)), s, keys, args)
		case "TRYAGAIN", "CLUSTERDOWN", "READONLY", "MASTERDOWN", "LOADING":
			w.nodes.doubt()
			return r
		default:
			return r
		}
	}
	return rueidis.NewErrorResult(fmt.Errorf("the slot %d was moved %d times while it was asked for", w.slot, redirects))
}

// whole is an address of which a node may leave out the host.
func whole(addr, asked string) string {
	if strings.HasPrefix(addr, ":") {
		host, _, _ := net.SplitHostPort(asked)
		return host + addr
	}
	return addr
}

// asking runs s on a node that a slot is on its way to. The node may not know the
// script, and forgets that it was told to do this after one command.
func (w slotWire) asking(ctx context.Context, l *link, s *script, keys, args []string) rueidis.RedisResult {
	c, err := l.ready(ctx)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	b := c.client.B()
	return c.both(ctx, b.Asking().Build(), b.Eval().Script(s.text()).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
}
