package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// member is one node of a quorum, as a client sees it.
type member struct {
	index    int
	addr     string
	key      string // of its own hash
	link     *link
	peers    []*member // all nodes, itself too
	standing atomic.Pointer[standing]
	queue    chan *request   // closed with the store
	life     context.Context // the store's

	// What follows is serve's alone.
	watch   *time.Timer
	watched *conn // what watch cuts
}

// standing is what the present connection's greeting found out.
type standing struct {
	id     string // the node's marker
	quorum string
	err    error // why it may not vote
}

// errNoVote says that a node may not vote.
var errNoVote = errors.New("it does not vote")

// members are the nodes of a quorum, whose first dials are under way.
func members(life context.Context, opts []rueidis.ClientOption, key string) []*member {
	all := make([]*member, len(opts))
	for i, opt := range opts {
		all[i] = &member{index: i, addr: opt.InitAddress[0], key: key, peers: all, queue: make(chan *request, maxQueue), life: life}
	}
	for i, n := range all {
		n.link = startDirect(opts[i], n.greet)
	}
	return all
}

// conn returns the connection to a node that may vote. A node that could not be
// reached the last time is not waited for.
func (n *member) conn(ctx context.Context) (*conn, error) {
	c, err := n.link.ready(ctx)
	if err != nil {
		return nil, n.failed(ctx, err)
	}
	if st := n.standing.Load(); st.err != nil {
		return nil, st.err
	}
	return c, nil
}

// nodeReply is reply, of a node: scripts of a quorum don't tell what they had changed
// before they were denied something, so that is unknown.
func nodeReply(name, text string) error {
	if isDeniedInside(text) {
		return fmt.Errorf("redis: %s%s", text, hint(replies["NOPERM"].hint))
	}
	return reply(name, text)
}

// failed is failed, and names the node.
func (n *member) failed(ctx context.Context, err error) error {
	if e, ok := rueidis.IsRedisErr(err); ok && ctx.Err() == nil {
		err = nodeReply("", e.Error())
	} else {
		err = failed(ctx, "", err)
	}
	if driver.Certain(err) {
		return driver.Rejectedf("", "the node %s: %w", n.addr, err)
	}
	return fmt.Errorf("the node %s: %w", n.addr, err)
}

// greet finds out whether the node at the end of a new connection may vote: it is
// a node of this quorum, and it has not been restarted since it was made one,
// unless it keeps all that it has answered.
func (n *member) greet(ctx context.Context, c *conn) error {
	i, err := inspect(ctx, c, n.key)
	if err != nil {
		return err
	}
	st := &standing{id: i.id, quorum: i.quorum}
	switch {
	case i.cluster || i.replica:
		st.err = driver.Rejectedf("", "the node %s is a replica or part of a cluster: a quorum is of servers that know nothing of each other", n.addr)
	case i.id == "":
		st.err = fmt.Errorf("the node %s is not a node of a quorum, or has lost its memory (dibs redlock init makes a new quorum, dibs redlock readmit lets a node back in): %w", n.addr, errNoVote)
	case i.run != i.now && !i.durable:
		st.err = fmt.Errorf("the node %s was restarted and may have forgotten what it had answered: dibs redlock readmit lets it vote again: %w", n.addr, errNoVote)
	}
	if st.err == nil && i.run != i.now {
		args := []string{i.run, "run", "0", "run", i.now}
		if err := c.do(ctx, c.client.B().Eval().Script(initScript.text()).Numkeys(1).Key(n.key).Arg(args...).Build()).Error(); err != nil {
			return err
		}
	}
	if st.err == nil {
		st.err = n.fits(i)
	}
	n.standing.Store(st)
	// Known scripts are run in the order in which they are sent; one whose text has
	// to be sent comes after those behind it. Who may not load them does without.
	for _, sc := range []*script{askScript, settleScript, proveScript, giveScript} {
		err := c.do(ctx, c.client.B().ScriptLoad().Script(sc.text()).Build()).Error()
		if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
			return err
		}
	}
	return nil
}

// greeting guards the comparison of nodes with each other.
var greeting sync.Mutex

// fits tells why i can't be in one quorum with the other nodes of the list.
func (n *member) fits(i inspected) error {
	greeting.Lock()
	defer greeting.Unlock()
	if i.size != len(n.peers) {
		return driver.Rejectedf("", "the node %s is one of a quorum of %d (%s), and %d are listed: every client has to list all of them", n.addr, i.size, strings.Join(i.peers, ", "), len(n.peers))
	}
	for _, p := range n.peers {
		st := p.standing.Load()
		switch {
		case p == n || st == nil || st.id == "":
		case st.id == i.id:
			return driver.Rejectedf("", "the nodes %s and %s are the same server", p.addr, n.addr)
		case st.quorum != i.quorum:
			return driver.Rejectedf("", "the nodes %s and %s are of different quorums", p.addr, n.addr)
		}
	}
	n.standing.Store(&standing{id: i.id, quorum: i.quorum})
	return nil
}
