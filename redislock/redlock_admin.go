package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

// A RedlockNode is one node of a quorum, as RedlockStatus found it.
type RedlockNode struct {
	Addr    string
	Err     error         // why it could not be asked; then nothing else is set
	Votes   bool          // it takes part
	Why     string        // if it does not: why, and what to do
	Durable bool          // what it has answered survives a crash (appendfsync always)
	Largest uint64        // no counter that it gave for any name is larger
	Longest time.Duration // for how long a name was closed at most
	Uptime  time.Duration
}

// inspected is what a node says of itself.
type inspected struct {
	id, quorum string   // its marker, and its quorum's; "": it has none
	size       int      // of the quorum
	peers      []string // the nodes' addresses, as init was given them
	run, now   string   // the server's run id when it was made a node, and its present one
	lost       string   // when it was found to have lost its memory, by micros; "": it was not
	durable    bool
	replica    bool
	cluster    bool
	hi         uint64
	longest    time.Duration
	uptime     time.Duration
	micros     int64 // the server's clock
}

// inspect asks a node what it is.
func inspect(ctx context.Context, c *conn, key string) (i inspected, err error) {
	hash, err := c.do(ctx, c.client.B().Hgetall().Key(key).Build()).AsStrMap()
	if err != nil {
		return i, err
	}
	text, err := c.do(ctx, c.client.B().Info().Build()).ToString()
	if err != nil {
		return i, err
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[k] = v
	}
	number := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
	i = inspected{
		id: hash["id"], quorum: hash["quorum"], run: hash["run"], now: info["run_id"], lost: hash["lost"],
		size: int(number(hash["size"])), peers: strings.Fields(hash["nodes"]),
		replica: info["role"] != "master", cluster: info["cluster_enabled"] == "1",
		hi: uint64(number(hash["hi"])), longest: time.Duration(number(hash["longest"])) * time.Microsecond,
		uptime: time.Duration(number(info["uptime_in_seconds"])) * time.Second,
		micros: number(info["server_time_usec"]),
	}
	// A user who may not ask for the configuration can't tell, and so it is not.
	conf, err := c.do(ctx, c.client.B().ConfigGet().Parameter("appendonly", "appendfsync").Build()).AsStrMap()
	if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
		return i, err
	}
	i.durable = err == nil && conf["appendonly"] == "yes" && conf["appendfsync"] == "always"
	return i, nil
}

// admin is a connection to each node, for an operator.
type admin struct {
	config quorumConfig
	conns  []*conn // nil: it could not be reached
	found  []inspected
	errs   []error
}

// administer connects to the nodes that rawURL lists.
func administer(ctx context.Context, rawURL string) (*admin, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "redlock" && u.Scheme != "redlocks" {
		return nil, driver.Rejectedf("", "%s:// is no quorum: want redlock://host1:port,host2:port,host3:port", u.Scheme)
	}
	c, err := parseRedlock(u)
	if err != nil {
		return nil, err
	}
	n := len(c.nodes)
	a := &admin{c, make([]*conn, n), make([]inspected, n), make([]error, n)}
	var wg sync.WaitGroup
	for i, opt := range c.nodes {
		wg.Go(func() { // ends with its dial and greeting
			ctx, cancel := context.WithTimeout(ctx, dialPatience)
			defer cancel()
			l := makeLink(opt, func(context.Context, *conn) error { return nil })
			defer l.cancel()
			if a.conns[i], a.errs[i] = l.dial(ctx); a.errs[i] == nil {
				a.found[i], a.errs[i] = inspect(ctx, a.conns[i], c.keys.node)
			}
			if a.errs[i] != nil {
				a.errs[i] = fmt.Errorf("the node %s: %w", opt.InitAddress[0], failed(ctx, "", a.errs[i]))
			}
		})
	}
	wg.Wait()
	return a, nil
}

func (a *admin) close() {
	for _, c := range a.conns {
		if c != nil {
			c.close()
		}
	}
}

func (a *admin) addr(i int) string { return a.config.nodes[i].InitAddress[0] }

// RedlockInit makes the servers that rawURL lists, redlock://host1,host2,host3, the
// nodes of a new quorum. All have to be there, and none may be a node already: it
// is an ErrRejected otherwise, and nothing is changed. Tokens start from the
// servers' clocks, so that a quorum that takes the place of one whose nodes have
// all lost their memory goes on from larger ones.
func RedlockInit(ctx context.Context, rawURL string) error {
	a, err := administer(ctx, rawURL)
	if err != nil {
		return err
	}
	defer a.close()
	if err := errors.Join(a.errs...); err != nil {
		return fmt.Errorf("redlock: every node has to be there: %w", err)
	}
	var base int64
	var addrs []string
	for i, f := range a.found {
		switch {
		case f.id != "":
			return driver.Rejectedf("", "redlock: %s is a node of a quorum already (%s)", a.addr(i), strings.Join(f.peers, ", "))
		case f.replica || f.cluster:
			return driver.Rejectedf("", "redlock: %s is a replica or part of a cluster: a quorum is of servers that know nothing of each other", a.addr(i))
		}
		for j := range i {
			if a.found[j].now == f.now {
				return driver.Rejectedf("", "redlock: %s and %s are the same server", a.addr(j), a.addr(i))
			}
		}
		base = max(base, f.micros)
		addrs = append(addrs, a.addr(i))
	}
	name := rand.Text()
	for i := range a.conns {
		err := a.note(ctx, i, "", "id", base, "id", rand.Text(), "quorum", name, "size", strconv.Itoa(len(addrs)),
			"nodes", strings.Join(addrs, " "), "run", a.found[i].now, "longest", "0", "idle", "60000000")
		if err != nil {
			return fmt.Errorf("redlock: %w; nodes before it were made nodes already: dibs redlock readmit adds the rest", err)
		}
	}
	return nil
}

// note changes a node's hash if its field is what it was when it was inspected.
func (a *admin) note(ctx context.Context, i int, was, field string, base int64, changes ...string) error {
	args := append([]string{was, field, strconv.FormatInt(base, 10)}, changes...)
	c := a.conns[i]
	hash, err := c.do(ctx, c.client.B().Eval().Script(initScript.text()).Numkeys(1).Key(a.config.keys.node).Arg(args...).Build()).AsStrMap()
	if err != nil {
		return fmt.Errorf("the node %s: %w", a.addr(i), failed(ctx, "", err))
	}
	if at := slices.Index(changes, field); hash[field] != changes[at+1] {
		return driver.Rejectedf("", "the node %s was changed by another", a.addr(i))
	}
	return nil
}

// RedlockStatus tells how the nodes that rawURL lists are. A node that can't be
// reached is no error of the call.
func RedlockStatus(ctx context.Context, rawURL string) ([]RedlockNode, error) {
	a, err := administer(ctx, rawURL)
	if err != nil {
		return nil, err
	}
	defer a.close()
	nodes := make([]RedlockNode, len(a.conns))
	for i, f := range a.found {
		nodes[i] = RedlockNode{Addr: a.addr(i), Err: a.errs[i]}
		if a.errs[i] == nil {
			why := a.mute(i)
			nodes[i] = RedlockNode{a.addr(i), nil, why == "", why, f.durable, f.hi, f.longest, f.uptime}
		}
	}
	return nodes, nil
}

// mute tells why a node does not vote, or "".
func (a *admin) mute(i int) string {
	f, name := a.found[i], a.name()
	switch {
	case f.cluster || f.replica:
		return "it is a replica or part of a cluster, and not a server by itself"
	case f.id == "" && name == "":
		return "it is no node yet: dibs redlock init"
	case f.id == "":
		return "it has lost its memory: dibs redlock readmit"
	case f.quorum != name:
		return "it is a node of another quorum (" + strings.Join(f.peers, ", ") + ")"
	case f.size != len(a.conns):
		return fmt.Sprintf("it is one of %d nodes (%s), and %d are listed", f.size, strings.Join(f.peers, ", "), len(a.conns))
	case f.run != f.now && !f.durable:
		return "it was restarted and may have forgotten: dibs redlock readmit"
	}
	return ""
}

// name is the quorum's, as most nodes say.
func (a *admin) name() (name string) {
	most := 0
	for _, f := range a.found {
		n := 0
		for _, o := range a.found {
			if o.quorum == f.quorum {
				n++
			}
		}
		if f.quorum != "" && n > most {
			name, most = f.quorum, n
		}
	}
	return name
}

// RedlockReadmit lets the node at addr, which lost its memory or was restarted,
// vote again: it copies from a majority of voting nodes what no counter that they
// ever gave is larger than. It is an ErrRejected, which says how long to wait, until as
// long has passed as any claim was granted for, since the node was started, or, if it
// has no memory at all, since the first call for it: it may have lost it just then. A
// holder may rely on what the node has forgotten until that time.
func RedlockReadmit(ctx context.Context, rawURL, addr string) error {
	a, err := administer(ctx, rawURL)
	if err != nil {
		return err
	}
	defer a.close()
	at := slices.IndexFunc(a.config.nodes, func(o rueidis.ClientOption) bool { return o.InitAddress[0] == addr })
	if at < 0 {
		return driver.Rejectedf("", "redlock: %s is none of the nodes in the URL", addr)
	}
	if a.errs[at] != nil {
		return fmt.Errorf("redlock: %w", a.errs[at])
	}
	f, name := a.found[at], a.name()
	if name == "" {
		return driver.Rejectedf("", "redlock: no node is one of a quorum: dibs redlock init")
	}
	var (
		voters  []int
		base    uint64
		longest time.Duration
	)
	for i, o := range a.found {
		if i != at && a.errs[i] == nil && a.mute(i) == "" {
			voters, base, longest = append(voters, i), max(base, o.hi), max(longest, o.longest)
		}
	}
	why := a.mute(at)
	switch q := quorum.Majority(len(a.conns)); {
	case why == "":
		return driver.Rejectedf("", "redlock: %s votes already", addr)
	case f.replica || f.cluster || f.id != "" && (f.quorum != name || f.size != len(a.conns)):
		return driver.Rejectedf("", "redlock: %s can't vote: %s", addr, why)
	case len(voters) < q:
		return driver.Rejectedf("", "redlock: %d other nodes vote, and a majority of %d has to: %w", len(voters), len(a.conns), errors.Join(a.errs...))
	case f.id != "" && f.uptime <= longest:
		return driver.Rejectedf("", "redlock: %s has been up for %v, and claims were granted for up to %v: readmit it in %v", addr, f.uptime, longest, longest-f.uptime+time.Second)
	case f.id == "" && f.lost == "":
		f.lost = strconv.FormatInt(f.micros, 10)
		if err := a.note(ctx, at, "", "lost", 0, "lost", f.lost); err != nil {
			return err
		}
	}
	other := a.found[voters[0]]
	changes := []string{
		"quorum", name, "size", strconv.Itoa(len(a.conns)), "nodes", strings.Join(other.peers, " "), "run", f.now,
		"longest", strconv.FormatInt(longest.Microseconds(), 10), "idle", "60000000",
	}
	if f.id == "" {
		since, _ := strconv.ParseInt(f.lost, 10, 64)
		if left := longest - time.Duration(f.micros-since)*time.Microsecond; left > 0 {
			return driver.Rejectedf("", "redlock: %s has lost its memory, nobody knows when, and claims were granted for up to %v: readmit it in %v", addr, longest, left.Round(time.Millisecond)+time.Second)
		}
		return a.note(ctx, at, f.lost, "lost", int64(base), append(changes, "id", rand.Text(), "lost", "")...)
	}
	// What it remembers may be old. All names start from base.
	if err := a.forget(ctx, at); err != nil {
		return err
	}
	return a.note(ctx, at, f.run, "run", int64(base), changes...)
}

// forget removes all that a node knows of names.
func (a *admin) forget(ctx context.Context, i int) error {
	c := a.conns[i]
	for cursor := uint64(0); ; {
		e, err := c.do(ctx, c.client.B().Scan().Cursor(cursor).Match(glob(a.config.keys.every)+"*").Count(scanCount).Build()).AsScanEntry()
		if err == nil && len(e.Elements) > 0 {
			keys := slices.DeleteFunc(e.Elements, func(k string) bool { return k == a.config.keys.node })
			if len(keys) > 0 {
				err = c.do(ctx, c.client.B().Unlink().Key(keys...).Build()).Error()
			}
		}
		if err != nil {
			return fmt.Errorf("the node %s: %w", a.addr(i), failed(ctx, "", err))
		}
		if cursor = e.Cursor; cursor == 0 {
			return nil
		}
	}
}
