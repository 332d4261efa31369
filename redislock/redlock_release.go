package redislock

import (
	"context"
	"errors"
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
	a := &ballots{Redlock: s, claim: c, number: s.number.Add(1), all: make([]ballot, len(s.nodes))}
	s.owed.gone(c)
	until, how := time.Now().Add(c.TTL), "f"
	if c.Keep > 0 {
		how = "k"
	}
	each := func(n *member, err error) {
		if err != nil && !errors.Is(err, errNoVote) && how == "f" {
			s.owed.add(n, c, a.number, until)
		}
	}
	p := s.ask(ctx, s.nodes, patience(c.TTL), each, giveScript, s.keys.of(c.Name), []string{s.packQuorum(c, c.Token, a.number)}, how)
	defer p.detach()
	for range s.nodes {
		select {
		case r := <-p.answers:
			a.count(r)
		case <-ctx.Done():
			return over(ctx)
		}
		if done, err := a.released(); done {
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
		a.sync()
		return true, nil
	case mine > 0 || held <= len(a.all)-q:
		return false, nil
	}
	return true, a.notHeld()
}

// sync tells nodes that have not seen the fence of a claim that was released, in
// the background, so that they give the next one the same counter as the others.
func (a *ballots) sync() {
	if a.claim.Token == 0 {
		return
	}
	var some []*member
	for i, b := range a.all {
		if b.Kind == quorum.Behind || b.Kind == quorum.Silent {
			some = append(some, a.nodes[i])
		}
	}
	if len(some) > 0 {
		a.ask(context.Background(), some, patience(a.claim.TTL), nil, giveScript, a.keys.of(a.claim.Name), []string{a.packQuorum(a.claim, a.claim.Token, a.number)}, "s")
	}
}

// notHeld says who has the name instead, if a node knew.
func (a *ballots) notHeld() error {
	e := &driver.NotHeldError{Name: a.claim.Name}
	if groups := a.blockers(); len(groups) > 0 {
		h := *most(groups[0]).holder
		e.By = &h
	}
	return e
}
