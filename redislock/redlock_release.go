package redislock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

// Release gives back c on all nodes. A node that does not answer is asked again
// until c's TTL has passed.
func (s *Redlock) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.CheckName(c.Name); err != nil {
		return err
	}
	if c.ID == "" {
		return driver.Rejectedf(c.Name, "the claim has no ID")
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	c.TTL = min(max(c.TTL, redlockFacts.MinTTL), redlockFacts.MaxTTL)
	a := &ballots{Redlock: s, claim: c, number: s.number.Add(1)}
	a.clear()
	s.owed.gone(c)
	until, how := time.Now().Add(c.TTL), "f"
	if c.Keep > 0 {
		how = "k"
	}
	who, what := s.packQuorum(c, c.Token, a.number)
	b := &behind{ballots: a}
	each := func(r returned) {
		switch {
		case r.err == nil:
			b.heard(r)
		case !errors.Is(r.err, errNoVote) && how == "f":
			s.owed.add(r.node, c, a.number, until)
		}
	}
	p := s.ask(s.nodes, patience(c.TTL), each, giveScript, s.keys.of(c.Name), []string{"1", who, what, how})
	defer p.end()
	for range s.nodes {
		switch r, err := p.next(ctx); {
		case err == errLate:
			a.mute()
		case err != nil:
			return err
		default:
			a.count(r)
		}
		if done, err := a.released(); done {
			if err == nil {
				b.confirm()
			}
			return err
		}
	}
	return tooFew(a.all)
}

// released judges the answers to a release: done is whether that can be. One node
// that had the claim is enough to know that it was held, but a majority has to
// have answered for the name to be free.
func (a *ballots) released() (done bool, err error) {
	q := quorum.Majority(len(a.all))
	mine, held, open := 0, 0, 0
	for _, b := range a.all {
		switch b.Kind {
		case quorum.Silent:
			open++
		case quorum.Mine:
			mine++
		case quorum.Held, quorum.Behind:
			held++
		}
	}
	switch {
	case mine >= q, open == 0 && mine > 0 && mine+held >= q:
		return true, nil
	case mine > 0 || held <= len(a.all)-q || !a.sure():
		return false, nil
	}
	return true, a.notHeld()
}

// behind are the nodes that have not seen the fence of a claim that is released:
// they are told, so that they give the next one the same counter as the others,
// but not before it is known that this fence was the claim's. Then those are told to
// let it go, too, that have it under a larger counter, because they were asked late or
// were readmitted, and the others to go on from there: a node that is ahead of them
// would keep no claim of theirs alive.
type behind struct {
	*ballots
	mu    sync.Mutex // guards what follows
	sure  bool
	nodes []*member
	ahead []*member
	most  uint64 // of their counters
}

// heard looks at a node's answer to the release.
func (b *behind) heard(r returned) {
	if b.claim.Token == 0 || !r.m.IsArray() {
		return
	}
	said := readReply(b.claim.Name, r.m)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case said.Kind == quorum.Behind:
		b.nodes = append(b.nodes, r.node)
	case said.Kind == quorum.Held && said.id == b.claim.ID && said.Counter > b.claim.Token:
		b.ahead, b.most = append(b.ahead, r.node), max(b.most, said.Counter)
	}
	b.tellLocked()
}

// confirm says that the claim was released under its fence.
func (b *behind) confirm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sure = true
	b.tellLocked()
}

func (b *behind) tellLocked() {
	if !b.sure {
		return
	}
	if len(b.ahead) > 0 {
		b.takeBack(b.ahead, b.claim, b.number)
		nobody := b.claim
		nobody.ID = "" // whoever has the name keeps it
		b.raise(b.Redlock.nodes, nobody, b.most, "u")
	}
	if len(b.nodes) > 0 {
		b.raise(b.nodes, b.claim, b.claim.Token, "s")
	}
	b.nodes, b.ahead = nil, nil
}

// raise tells nodes, about c, to bring their counters up to a fence.
func (b *behind) raise(nodes []*member, c driver.Claim, fence uint64, how string) {
	who, what := b.packQuorum(c, fence, b.number)
	b.tell(nodes, &request{
		script: giveScript, keys: b.keys.of(c.Name), args: []string{"1", who, what, how}, until: time.Now().Add(patience(c.TTL)),
	})
}

// foremost is the claim that most nodes say is in the way, and how many do.
func (a *ballots) foremost() (n int, same []ballot) {
	if groups := a.blockers(); len(groups) > 0 {
		same = groups[0]
	}
	return len(same), same
}

// sure tells whether the nodes that have not answered yet can't change who has a
// majority, if anybody has.
func (a *ballots) sure() bool {
	n, _ := a.foremost()
	silent := 0
	for _, b := range a.all {
		if b.Kind == quorum.Silent {
			silent++
		}
	}
	q := quorum.Majority(len(a.all))
	return n >= q || n+silent < q
}

// notHeld says who has the name instead, if a node knew.
func (a *ballots) notHeld() error {
	if slices.ContainsFunc(a.all, func(b ballot) bool { return b.taken }) {
		return driver.ErrRevoked
	}
	e := &driver.NotHeldError{Name: a.claim.Name}
	if n, groups := a.foremost(); n >= quorum.Majority(len(a.all)) {
		e.By = holderOf(groups)
	}
	return e
}
