package model

import (
	"fmt"
	"hash/maphash"

	"github.com/dibslock/dibs/redislock/internal/quorum"
)

// Most sizes of a model: a state has no pointers, so that it can be compared.
const (
	mostNodes   = 5
	mostClients = 3
	mostRounds  = 2 // of Settle, for one attempt
)

// rules are a protocol and what may happen to it. The zero value, with nodes and
// clients, is ours without faults but the network's and the clocks'.
type rules struct {
	nodes, clients int
	ceiling        uint8 // states with a larger counter are not looked at

	// The network: all requests may be lost and late, and all replies lost.
	doubled bool // a request may arrive more than once

	// What the nodes do.
	forgets bool // a node may forget a name that nobody has (once)
	amnesia bool // a node may lose its memory (once)
	marker  bool // a node that did does not vote until it is readmitted
	hasty   bool // wrong: readmitted with a counter that is its own

	// What the clients do besides acquiring.
	renews, releases bool

	revokes bool // an operator may take the name away from whoever was granted it

	each func(Call) // nil, or told of everything that happens to a node

	// Wrong on purpose.
	noSettle    bool // grants the largest counter of a majority, without a second round
	takesMax    bool // Settle takes the maximum instead of refusing
	renewsByID  bool // Renew does not look at the counter
	joinsAlways bool // Settle takes a free name whatever its counter
	abortRaises bool // an attempt that was given up raises counters
	oneRevokes  bool // a name counts as taken away when one node has done so
	reclaims    bool // Ask takes a name back that was taken away
}

// node is a quorum.Node and what the checker notes about it.
type node struct {
	holder, counter uint8
	revoked         bool
	mute            bool               // lost its memory, and may not vote
	order           [mostClients]uint8 // when each client was last known to have the name, by rank
}

// client is one attempt, and the lease that comes of it.
type client struct {
	phase   phase
	round   uint8             // of Settle, from 0
	fences  [mostRounds]uint8 // what each asked for
	out     [mostNodes]uint8  // requests that may still arrive, as bits
	asked   [mostNodes]vote
	settled [mostNodes]vote
	renewed [mostNodes]vote
	fence   uint8 // granted
	before  uint8 // the largest fence that had been returned when the deciding round was sent
	newest  uint8 // and when the renewal was
	proved  bool
	marked  [mostNodes]bool // nodes that said that they took the name away
	told    bool            // an operator has asked for it
	revoked bool            // most had, when the renewal was sent
	old     bool            // it was under way when a node lost its memory
}

type phase uint8

const (
	idle phase = iota
	asking
	settling
	holding
	renewing
	done
)

// The requests, as bits of out.
const (
	outAsk uint8 = 1 << iota
	outSettle0
	outSettle1
	outRenew
	outRelease
	outRevoke
)

// vote is a quorum.Vote in one byte.
type vote uint8

func pack(v quorum.Vote) vote { return vote(v.Kind)<<5 | vote(v.Counter) }
func (v vote) open() quorum.Vote {
	return quorum.Vote{Kind: quorum.Kind(v >> 5), Counter: uint64(v & 31)}
}
func (v vote) silent() bool { return v == 0 }
func (v vote) says(f uint8) bool {
	return v == pack(quorum.Vote{Kind: quorum.Mine, Counter: uint64(f)})
}

func open(vs []vote, into []quorum.Vote) []quorum.Vote {
	for i, v := range vs {
		into[i] = v.open()
	}
	return into[:len(vs)]
}

// world is a state of everything.
type world struct {
	nodes   [mostNodes]node
	clients [mostClients]client
	amnesia bool // has happened
	forgot  bool
}

// seed is fixed while a test runs.
var seed = maphash.MakeSeed()

// hash is the same for states that differ in the names of nodes alone.
func (w *world) hash() uint64 {
	var known struct {
		columns [mostNodes][2]uint64
		clients [mostClients]client
		once    [2]bool
	}
	known.clients, known.once = w.clients, [2]bool{w.amnesia, w.forgot}
	for n := range w.nodes {
		d := &w.nodes[n]
		a := uint64(d.holder)<<8 | uint64(d.counter)
		if d.mute {
			a |= 1 << 16
		}
		if d.revoked {
			a |= 1 << 17
		}
		var b uint64
		for i := range w.clients {
			c := &w.clients[i]
			a = a<<9 | uint64(d.order[i])<<7 | uint64(c.out[n])
			if c.marked[n] {
				a |= 1 << 6
			}
			b = b<<16 | uint64(c.asked[n]|c.settled[n])<<8 | uint64(c.renewed[n])
		}
		at := n
		for ; at > 0 && less([2]uint64{a, b}, known.columns[at-1]); at-- {
			known.columns[at] = known.columns[at-1]
		}
		known.columns[at] = [2]uint64{a, b}
	}
	for i := range known.clients {
		c := &known.clients[i]
		c.out, c.asked, c.settled, c.renewed = [mostNodes]uint8{}, [mostNodes]vote{}, [mostNodes]vote{}, [mostNodes]vote{}
		c.marked = [mostNodes]bool{}
	}
	return maphash.Comparable(seed, known)
}

func less(a, b [2]uint64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// action is one thing that can happen.
type action struct {
	what         act
	client, node uint8
}

type act uint8

const (
	starts act = iota
	askArrives
	askArrivesReplyLost
	settles // decides for a round of Settle with the votes it has
	settleArrives
	settleArrivesReplyLost
	oldSettleArrives
	takes // decides that it was granted
	startsRenewal
	renewArrives
	takesProof
	gives // releases, or gives the attempt up
	releaseArrives
	revokes // an operator does, from the client that has it
	revokeArrives
	drops // the name's time to live ends
	forgets
	losesMemory
	readmitted
)

var acts = [...]string{
	"starts", "ask arrives at", "ask arrives, reply lost, at", "settles", "settle arrives at", "settle arrives, reply lost, at",
	"old settle arrives at", "is granted", "starts a renewal", "renewal arrives at", "is proved", "gives up or releases",
	"release arrives at", "is to lose the name", "revocation arrives at", "drops its claim", "forgets the name", "loses its memory", "is readmitted",
}

func (a action) String() string {
	switch a.what {
	case drops, forgets, losesMemory, readmitted:
		return fmt.Sprintf("%c %s", 'X'+a.node, acts[a.what])
	case starts, settles, takes, startsRenewal, takesProof, gives, revokes:
		return fmt.Sprintf("client %d %s", a.client+1, acts[a.what])
	}
	return fmt.Sprintf("client %d: %s %c", a.client+1, acts[a.what], 'X'+a.node)
}

// enabled appends to as what can happen in w.
func (r *rules) enabled(w *world, as []action) []action {
	add := func(what act, c, n int) { as = append(as, action{what, uint8(c), uint8(n)}) }
	for i := range r.clients {
		c := &w.clients[i]
		switch c.phase {
		case idle:
			if i == 0 || w.clients[i-1].phase != idle { // they are all alike
				add(starts, i, 0)
			}
		case asking:
			if v, f := r.asked(c); v == quorum.Granted {
				add(takes, i, 0)
			} else if v == quorum.Settle && f <= uint64(r.ceiling) {
				add(settles, i, 0)
			}
			if r.releases {
				add(gives, i, 0)
			}
		case settling:
			if v, _ := r.settled(c); v == quorum.Granted {
				add(takes, i, 0)
			} else if v == quorum.Settle && c.round+1 < mostRounds {
				add(settles, i, 0)
			}
			if r.releases {
				add(gives, i, 0)
			}
		case holding:
			if r.renews && !c.proved {
				add(startsRenewal, i, 0)
			}
			if r.revokes && !c.told {
				add(revokes, i, 0)
			}
			if r.releases {
				add(gives, i, 0)
			}
		case renewing:
			var into [mostNodes]quorum.Vote
			if quorum.Renewed(open(c.renewed[:r.nodes], into[:])) == quorum.Granted {
				add(takesProof, i, 0)
			}
		}
		for n := range r.nodes {
			out := c.out[n]
			if out&outAsk != 0 {
				add(askArrives, i, n)
				if c.phase == asking && c.asked[n].silent() {
					add(askArrivesReplyLost, i, n)
				}
			}
			if out&(outSettle0<<c.round) != 0 {
				add(settleArrives, i, n)
				if c.phase == settling && c.settled[n].silent() {
					add(settleArrivesReplyLost, i, n)
				}
			}
			if c.round > 0 && out&outSettle0 != 0 {
				add(oldSettleArrives, i, n)
			}
			if out&outRenew != 0 && c.phase == renewing && c.renewed[n].silent() {
				add(renewArrives, i, n)
			}
			if out&outRelease != 0 {
				add(releaseArrives, i, n)
			}
			if out&outRevoke != 0 {
				add(revokeArrives, i, n)
			}
		}
	}
	for n := range r.nodes {
		d := &w.nodes[n]
		if d.holder != 0 {
			add(drops, 0, n)
		}
		if r.forgets && !w.forgot && d.holder == 0 && d.counter < r.ceiling {
			add(forgets, 0, n)
		}
		if r.amnesia && !w.amnesia && d.counter > 0 {
			add(losesMemory, 0, n)
		}
		if d.mute && r.patient(w) {
			add(readmitted, 0, n)
		}
	}
	return as
}

// patient tells whether the longest time to live has passed since a node lost
// its memory: every attempt that was under way then has come to its end.
func (r *rules) patient(w *world) bool {
	for i := range r.clients {
		if c := &w.clients[i]; c.old && (c.phase == asking || c.phase == settling) {
			return false
		}
	}
	return true
}

func (r *rules) asked(c *client) (quorum.Verdict, uint64) {
	var into [mostNodes]quorum.Vote
	votes := open(c.asked[:r.nodes], into[:])
	v, f := quorum.Asked(votes)
	if r.noSettle && v == quorum.Settle {
		return quorum.Granted, f
	}
	return v, f
}

// settled is what a client may do with the votes that it has; it may give up
// waiting for those that are still to come.
func (r *rules) settled(c *client) (quorum.Verdict, uint64) {
	var into [mostNodes]quorum.Vote
	votes := open(c.settled[:r.nodes], into[:])
	v, f := quorum.Settled(votes, uint64(c.fences[c.round]))
	if v == quorum.Wait {
		for i, o := range votes {
			if o.Kind == quorum.Silent {
				votes[i].Kind = quorum.Failed
			}
		}
		v, f = quorum.Settled(votes, uint64(c.fences[c.round]))
	}
	return v, f
}

// do makes a happen in w. It returns what is wrong with what came of it, or "".
func (r *rules) do(w *world, a action) string {
	c, d := &w.clients[a.client], &w.nodes[a.node]
	switch a.what {
	case starts:
		c.phase, c.before = asking, r.returned(w)
		for n := range r.nodes {
			c.out[n] |= outAsk
		}
	case askArrives, askArrivesReplyLost:
		if !r.doubled {
			c.out[a.node] &^= outAsk
		}
		v := r.ask(d, a.client)
		r.tell(a, Ask, 0, v)
		if a.what == askArrives && c.phase == asking && c.asked[a.node].silent() {
			c.asked[a.node] = r.noted(d, a.client, v)
		}
	case settles:
		_, f := r.asked(c)
		if c.phase == settling {
			_, f = r.settled(c)
			c.round++
		}
		c.asked = [mostNodes]vote{}
		c.phase, c.before, c.fences[c.round] = settling, r.returned(w), uint8(f)
		c.settled = [mostNodes]vote{}
		for n := range r.nodes {
			c.out[n] |= outSettle0 << c.round
		}
	case settleArrives, settleArrivesReplyLost:
		if !r.doubled {
			c.out[a.node] &^= outSettle0 << c.round
		}
		v := r.settle(d, a.client, c.fences[c.round])
		r.tell(a, Settle, c.fences[c.round], v)
		if a.what == settleArrives && c.phase == settling && c.settled[a.node].silent() {
			c.settled[a.node] = r.noted(d, a.client, v)
		}
	case oldSettleArrives:
		if !r.doubled {
			c.out[a.node] &^= outSettle0
		}
		r.tell(a, Settle, c.fences[0], r.settle(d, a.client, c.fences[0]))
	case takes:
		return r.grant(w, a.client)
	case startsRenewal:
		c.phase, c.newest, c.revoked = renewing, r.returned(w), r.taken(c)
		for n := range r.nodes {
			c.out[n] |= outRenew
		}
	case renewArrives:
		c.out[a.node] &^= outRenew
		c.renewed[a.node] = r.renew(d, a.client, c.fence)
		r.tell(a, Renew, c.fence, c.renewed[a.node])
	case takesProof:
		c.phase, c.proved = holding, true
		if c.newest > c.fence {
			return fmt.Sprintf("client %d is proved under %d after %d was granted", a.client+1, c.fence, c.newest)
		}
		if c.revoked {
			return fmt.Sprintf("client %d is proved under %d, which was taken away from it", a.client+1, c.fence)
		}
	case gives:
		*c = client{phase: done, round: c.round, fences: c.fences, out: c.out, fence: c.fence, asked: c.asked, settled: c.settled, told: c.told}
		for n := range r.nodes {
			c.out[n] |= outRelease
		}
	case releaseArrives:
		c.out[a.node] &^= outRelease
		r.release(d, a.client, c.fence)
		r.tell(a, Release, c.fence, 0)
	case revokes:
		c.told = true
		for n := range r.nodes {
			c.out[n] |= outRevoke
		}
	case revokeArrives:
		if !r.doubled {
			c.out[a.node] &^= outRevoke
		}
		v := r.revoke(d, c.fence)
		r.tell(a, Revoke, c.fence, v)
		c.marked[a.node] = c.marked[a.node] || v.says(c.fence)
	case drops:
		d.holder, d.revoked = 0, false
		r.tell(a, Drop, 0, 0)
	case forgets:
		w.forgot = true
		d.counter++
		r.tell(a, Forget, d.counter, 0)
	case losesMemory:
		w.amnesia = true
		d.holder, d.revoked, d.counter, d.mute = 0, false, 0, r.marker
		for i := range r.clients {
			w.clients[i].old = w.clients[i].phase != idle
		}
		r.tell(a, Amnesia, 0, 0)
	case readmitted:
		d.mute = false
		for n := range r.nodes {
			if !r.hasty {
				d.counter = max(d.counter, w.nodes[n].counter)
			}
		}
		r.tell(a, Readmit, d.counter, 0)
	}
	return ""
}

// A Call is what happens to a node: a request arrives there, or its memory fails.
type Call struct {
	Node  int
	Op    Op
	Claim uint8
	Fence uint8       // that is asked for; of Readmit, what its counters start from
	Vote  quorum.Vote // the answer to Ask, Settle, Renew and Revoke
}

// An Op is what a node is to do.
type Op uint8

// The requests, and what else happens.
const (
	Ask Op = iota
	Settle
	Renew
	Release
	Revoke
	Drop    // the claim's time to live ends
	Forget  // the name is forgotten, and the counters of such start from Fence
	Amnesia // everything is forgotten, and the node does not vote
	Readmit // it votes again
)

// tell tells r.each what happened to a node.
func (r *rules) tell(a action, op Op, fence uint8, v vote) {
	if r.each != nil {
		r.each(Call{int(a.node), op, a.client + 1, fence, v.open()})
	}
}

// The node's answers, by quorum.Node unless the rules are wrong.

func (r *rules) at(d *node, f func(*quorum.Node) quorum.Vote) vote {
	if d.mute {
		return pack(quorum.Vote{Kind: quorum.NoVote})
	}
	n := quorum.Node{Holder: d.holder, Counter: uint64(d.counter), Revoked: d.revoked}
	v := f(&n)
	d.holder, d.counter, d.revoked = n.Holder, uint8(n.Counter), n.Revoked
	if v.Kind != quorum.Mine && v.Kind != quorum.Passed && v.Kind != quorum.Behind {
		v.Counter = 0 // nobody looks at it
	}
	return pack(v)
}

func (r *rules) ask(d *node, c uint8) vote {
	return r.at(d, func(n *quorum.Node) quorum.Vote {
		if r.reclaims && n.Holder == c+1 {
			n.Revoked = false
		}
		return n.Ask(c + 1)
	})
}

func (r *rules) settle(d *node, c, fence uint8) vote {
	return r.at(d, func(n *quorum.Node) quorum.Vote {
		switch {
		case r.takesMax && n.Holder == c+1:
			n.Counter = max(n.Counter, uint64(fence))
			return quorum.Vote{Kind: quorum.Mine, Counter: uint64(fence)}
		case r.joinsAlways && n.Holder == 0:
			n.Holder, n.Counter = c+1, max(n.Counter, uint64(fence))
			return quorum.Vote{Kind: quorum.Mine, Counter: uint64(fence)}
		}
		return n.Settle(c+1, uint64(fence))
	})
}

func (r *rules) renew(d *node, c, fence uint8) vote {
	return r.at(d, func(n *quorum.Node) quorum.Vote {
		if r.renewsByID && n.Holder == c+1 {
			return quorum.Vote{Kind: quorum.Mine, Counter: uint64(fence)}
		}
		return n.Renew(c+1, uint64(fence))
	})
}

func (r *rules) release(d *node, c, fence uint8) {
	r.at(d, func(n *quorum.Node) quorum.Vote {
		if r.abortRaises && fence == 0 {
			n.Counter++
		}
		n.Release(c+1, uint64(fence))
		return quorum.Vote{}
	})
}

func (r *rules) revoke(d *node, fence uint8) vote {
	return r.at(d, func(n *quorum.Node) quorum.Vote { return n.Revoke(uint64(fence)) })
}

// taken tells whether an operator was told that the name is taken away from c.
func (r *rules) taken(c *client) bool {
	nodes := 0
	for _, yes := range c.marked {
		if yes {
			nodes++
		}
	}
	return nodes >= quorum.Majority(r.nodes) || r.oneRevokes && nodes > 0
}

// noted is v, if it says that c has the name at d, and notes when that was. A
// vote that says that another has it is like none: no client of the model draws a
// conclusion from it.
func (r *rules) noted(d *node, c uint8, v vote) vote {
	if k := v.open().Kind; k == quorum.Passed {
		return v
	} else if k != quorum.Mine {
		return 0
	}
	old := d.order[c]
	var top uint8
	for i := range d.order {
		if old != 0 && d.order[i] > old {
			d.order[i]--
		}
		if i != int(c) {
			top = max(top, d.order[i])
		}
	}
	d.order[c] = top + 1
	return v
}

// returned is the largest fence that any client was given.
func (r *rules) returned(w *world) (f uint8) {
	for i := range r.clients {
		f = max(f, w.clients[i].fence)
	}
	return f
}

// grant is where a client is given the lock, and where the promises are looked
// at: no other has that fence; it is larger than any that was given before the
// deciding round; and where two have voted for both, the later has the larger.
func (r *rules) grant(w *world, me uint8) string {
	c := &w.clients[me]
	if c.phase == asking {
		_, f := r.asked(c)
		c.fence = uint8(f)
	} else {
		c.fence = c.fences[c.round]
	}
	c.phase = holding
	if c.fence <= c.before {
		return fmt.Sprintf("client %d is granted %d after %d was", me+1, c.fence, c.before)
	}
	for i := range r.clients {
		o := &w.clients[i]
		if i == int(me) || o.fence == 0 {
			continue
		}
		if o.fence == c.fence {
			return fmt.Sprintf("clients %d and %d are both granted %d", me+1, i+1, c.fence)
		}
		for n := range r.nodes {
			d := &w.nodes[n]
			if !c.anchored(n) || !o.anchored(n) {
				continue
			}
			if later := d.order[me] > d.order[i]; later != (c.fence > o.fence) {
				return fmt.Sprintf("client %d is granted %d and client %d %d, in the other order than they had %c",
					me+1, c.fence, i+1, o.fence, 'X'+n)
			}
		}
	}
	return ""
}

// anchored tells whether node n voted for the fence that c was granted.
func (c *client) anchored(n int) bool {
	if c.settled[n].says(c.fence) && c.fences[c.round] == c.fence {
		return true
	}
	return c.round == 0 && c.fences[0] == 0 && c.asked[n].says(c.fence)
}
