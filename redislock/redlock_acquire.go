package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

const (
	splits = 4 // how often one Acquire asks when votes are split
	rounds = 4 // of Settle, before an attempt is given up: each but the first means that the name was lost meanwhile
)

// errSplit says that nobody has a majority: several ask at once.
var errSplit = errors.New("split")

// Acquire asks once for c. When several ask at once and none gets a majority, it
// takes back what it got and asks again, a few times, after a random pause.
func (s *Redlock) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := s.check(c)
	if err != nil {
		return driver.Grant{}, err
	}
	if err := s.enter(ctx); err != nil {
		return driver.Grant{}, err
	}
	for try := 1; ; try++ {
		a := &ballots{Redlock: s, claim: c, number: s.number.Add(1), began: time.Now()}
		s.tried.Add(1)
		g, err := a.acquire(ctx)
		if err != errSplit {
			return g, err
		}
		if try == splits {
			return g, a.held()
		}
		// As long as an attempt takes, times the attempts: somebody is alone then.
		pause := time.NewTimer(rand.N(time.Duration(try) * 2 * max(time.Since(a.began), time.Millisecond)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return g, over(ctx)
		case <-s.life.Done():
			pause.Stop()
			return g, errRedlockClosed
		}
	}
}

// ballots are an attempt to get a claim, and the answers to its last request.
type ballots struct {
	*Redlock
	claim  driver.Claim
	number uint64
	began  time.Time
	all    []ballot      // by node
	votes  []quorum.Vote // those in all
}

// acquire asks all nodes, and if need be settles on a fence. Whatever it does not
// return as granted it takes back.
func (a *ballots) acquire(ctx context.Context) (driver.Grant, error) {
	verdict, fence, err := a.first(ctx)
	if verdict == quorum.Settle {
		a.second.Add(1)
	}
	if verdict == quorum.Granted || verdict == quorum.Settle {
		fence, verdict, err = a.settle(ctx, verdict, fence, a.nodes)
	}
	switch {
	case slices.ContainsFunc(a.all, func(b ballot) bool { return b.other }):
		// The ID has a claim, which is not to be taken back.
		return driver.Grant{}, driver.Rejectedf(a.claim.Name, "the claim was asked for before with other units or another capacity")
	case err != nil:
		a.giveUp()
		return driver.Grant{}, err
	case verdict == quorum.Granted:
		if past := time.Since(a.began); past+drift(a.claim.TTL) >= a.claim.TTL {
			a.giveUp()
			return driver.Grant{}, fmt.Errorf("redlock: granted after %v, too late for a TTL of %v", past, a.claim.TTL)
		}
		a.owed.granted(a.claim, fence)
		return driver.Grant{Token: fence, Fence: fence, TTL: a.claim.TTL, TookOver: a.tookOver()}, nil
	}
	a.giveUp()
	if verdict == quorum.Unknown {
		return driver.Grant{}, tooFew(a.all)
	}
	if a.split() {
		return driver.Grant{}, errSplit
	}
	return driver.Grant{}, a.held()
}

// drift is what two clocks may differ by over a TTL.
func drift(ttl time.Duration) time.Duration { return max(ttl/100, 5*time.Millisecond) }

// first is the first round. When a majority has granted the name under different
// counters, it waits for the other nodes only if they could spare a second
// round, and no longer than the first took: that is what the second would cost.
func (a *ballots) first(ctx context.Context) (quorum.Verdict, uint64, error) {
	p := a.send(a.nodes, askScript, 0)
	defer p.end()
	var enough bool // a majority has granted it
	for range a.nodes {
		r, err := p.next(ctx)
		switch {
		case err == errLate && enough:
			_, fence := quorum.Asked(a.votes)
			return quorum.Settle, fence, nil
		case err == errLate:
			a.mute()
		case err != nil:
			return quorum.Unknown, 0, err
		default:
			a.count(r)
		}
		switch verdict, fence := quorum.Asked(a.votes); verdict {
		case quorum.Wait:
		case quorum.Settle:
			if !quorum.Mergeable(a.votes) {
				return verdict, fence, nil
			}
			if !enough {
				enough = true
				p.late.Reset(time.Since(a.began))
			}
		default:
			return verdict, fence, nil
		}
	}
	verdict, fence := quorum.Asked(a.votes)
	return verdict, fence, nil
}

// settle raises the counters of nodes to fence until a majority has it.
func (a *ballots) settle(ctx context.Context, verdict quorum.Verdict, fence uint64, nodes []*member) (uint64, quorum.Verdict, error) {
	asked := a.all
	for round := 0; verdict == quorum.Settle; round++ {
		if round == rounds {
			return fence, quorum.Unknown, nil
		}
		p := a.send(nodes, settleScript, fence)
		next := fence
		verdict = quorum.Wait
		for i := 0; verdict == quorum.Wait && i < len(nodes); i++ {
			switch r, err := p.next(ctx); {
			case err == errLate:
				a.mute()
			case err != nil:
				p.end()
				return fence, quorum.Unknown, err
			default:
				a.count(r)
			}
			verdict, next = quorum.Settled(a.votes, fence)
		}
		p.end()
		for i := range a.all { // what the first round said of the claim before
			a.all[i].before, a.all[i].took, a.all[i].blank = asked[i].before, asked[i].took, asked[i].blank
		}
		if verdict == quorum.Settle {
			fence = next
		}
	}
	return fence, verdict, nil
}

// send sends a request about the claim to nodes, and forgets the answers to the
// one before.
func (a *ballots) send(nodes []*member, sc *script, fence uint64) poll {
	a.clear()
	c := a.claim
	each := a.owed.asked(c, a.number, len(nodes), time.Now().Add(c.TTL))
	who, what := a.packQuorum(c, fence, a.number)
	return a.ask(nodes, patience(c.TTL), each, sc, a.keys.of(c.Name), []string{
		"1", who, what, strconv.FormatInt(micros(c.TTL), 10), strconv.FormatInt(micros(max(c.TTL, c.Keep)+c.Delay), 10),
	})
}

// clear makes room for the answers of all nodes.
func (a *ballots) clear() {
	a.all, a.votes = make([]ballot, len(a.nodes)), make([]quorum.Vote, len(a.nodes))
}

// set notes a node's answer.
func (a *ballots) set(i int, b ballot) { a.all[i], a.votes[i] = b, b.Vote }

// mute gives up the nodes that have not answered.
func (a *ballots) mute() {
	for i, b := range a.all {
		if b.Kind == quorum.Silent {
			a.set(i, failedBallot(fmt.Errorf("the node %s: %w", a.nodes[i].addr, errLate)))
		}
	}
}

// count reads a node's answer.
func (a *ballots) count(r returned) {
	if r.err != nil {
		a.set(r.node.index, failedBallot(r.err))
		return
	}
	a.set(r.node.index, readReply(a.claim.Name, r.m))
}

// giveUp takes the attempt back, in the background, from every node that did not
// certainly refuse it.
func (a *ballots) giveUp() {
	var some []*member
	for i, b := range a.all {
		if b.Kind != quorum.Held {
			some = append(some, a.nodes[i])
		}
	}
	a.claim.Token = 0
	a.owed.gone(a.claim)
	a.takeBack(some, a.claim, a.number)
}

// takeBack releases c by its ID on some nodes, and has it repeated where that is
// not heard.
func (s *Redlock) takeBack(some []*member, c driver.Claim, number uint64) {
	if len(some) == 0 {
		return
	}
	now := time.Now()
	who, what := s.packQuorum(c, 0, number)
	s.tell(some, &request{
		script: giveScript, keys: s.keys.of(c.Name), args: []string{"1", who, what, "f"}, until: now.Add(patience(c.TTL)),
		each: func(r returned) {
			if r.err != nil && !errors.Is(r.err, errNoVote) {
				s.owed.add(r.node, c, number, now.Add(c.TTL))
			}
		},
	})
}

// tookOver tells whether the claim before ended by a death, as most say of the nodes
// that know how the newest counter's ended. One that missed its release may say so
// wrongly.
func (a *ballots) tookOver() bool {
	newest, yes, no := uint64(0), 0, 0
	for _, b := range a.all {
		if b.Kind != quorum.Mine && b.Kind != quorum.Passed || b.blank || b.before < newest {
			continue
		}
		if b.before > newest {
			newest, yes, no = b.before, 0, 0
		}
		if b.took {
			yes++
		} else {
			no++
		}
	}
	return yes > no
}

// blockers groups the refusals by the claim in the way, the most frequent first.
func (a *ballots) blockers() [][]ballot {
	var groups [][]ballot
	for _, b := range a.all {
		if b.holder == nil {
			continue
		}
		i := slices.IndexFunc(groups, func(g []ballot) bool { return g[0].id == b.id })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], b)
	}
	slices.SortStableFunc(groups, func(x, y []ballot) int {
		return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(most(y).Counter, most(x).Counter))
	})
	return groups
}

func most(bs []ballot) ballot {
	return slices.MaxFunc(bs, func(x, y ballot) int { return cmp.Compare(x.Counter, y.Counter) })
}

// holderOf is who bs say has the name, under the token that most of them know. A node
// that the claim came to late, or that forgets more slowly, may have a larger counter.
func holderOf(bs []ballot) *driver.Holder {
	same := func(b ballot) (n int) {
		for _, o := range bs {
			if o.Counter == b.Counter {
				n++
			}
		}
		return n
	}
	h := *slices.MaxFunc(bs, func(x, y ballot) int {
		return cmp.Or(cmp.Compare(same(x), same(y)), cmp.Compare(x.Counter, y.Counter))
	}).holder
	return &h
}

// split tells whether nobody can have a majority of the nodes.
func (a *ballots) split() bool {
	open := 0
	for _, b := range a.all {
		if b.Kind != quorum.Held && b.Kind != quorum.Mine && b.Kind != quorum.Passed {
			open++
		}
	}
	groups := a.blockers()
	return len(groups) == 0 || len(groups[0])+open < quorum.Majority(len(a.all))
}

// held is the refusal: who is in the way, and when a majority of the nodes is free
// if nobody acts.
func (a *ballots) held() error {
	e := &driver.HeldError{Name: a.claim.Name}
	var waits []time.Duration
	had := 0
	for _, b := range a.all {
		switch b.Kind {
		case quorum.Held:
			waits = append(waits, b.closed)
		case quorum.Mine, quorum.Passed:
			had++
		}
	}
	groups := a.blockers()
	if len(groups) > 0 && !a.split() {
		e.Holder = holderOf(groups[0])
	}
	if e.Holder == nil {
		e.RetryAfter = rand.N(10*time.Millisecond) + time.Millisecond // several ask at once
		return e
	}
	// A majority has to be free, of which those are that were had and given back. Those
	// that did not answer are no help, or are as the others.
	slices.Sort(waits)
	if need := quorum.Majority(len(a.all)) - had; need > 0 {
		e.RetryAfter = waits[min(need, len(waits))-1]
	}
	return e
}

// tooFew is the error of a request that too few nodes answered. It is certain, a
// rejection, only if so many nodes reject it that no majority can come together.
func tooFew(bs []ballot) error {
	var errs []error
	answered, rejected := 0, 0
	for _, b := range bs {
		switch {
		case b.err != nil:
			errs = append(errs, b.err)
			if errors.Is(b.err, driver.ErrRejected) && !errors.Is(b.err, errNoVote) {
				rejected++
			}
		case b.Kind != quorum.Silent:
			answered++
		}
	}
	q := quorum.Majority(len(bs))
	all := errors.Join(errs...)
	if rejected > len(bs)-q {
		return driver.Rejectedf("", "redlock: %w", all)
	}
	return fmt.Errorf("redlock: %d of %d nodes answered, and a majority is %d: %s", answered, len(bs), q, join(errs))
}

// join tells errors in words only, so that none of them passes for an answer.
func join(errs []error) string {
	var words []string
	for _, err := range errs {
		words = append(words, err.Error())
	}
	return strings.Join(words, "; ")
}
