package redislock

import (
	"context"
	"strconv"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

// Renew proves claims: a majority of the nodes still has each under its token,
// which is also to say that no newer grant had been made when the call began. Nodes
// that lack a claim, because they were slow or away, are given it afterwards.
func (s *Redlock) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if len(cs) > redlockFacts.MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), redlockFacts.MaxBatch)
	}
	if err := s.enter(ctx); err != nil {
		return allUnknown(len(cs), err), err
	}
	var (
		proofs = make([]driver.Proof, len(cs))
		asked  []*ballots // the claims that are good, and
		at     []int      // where each stands in cs
		names  []string
		packs  = []string{""} // how many, and each
		short  = redlockFacts.MaxTTL
	)
	for i, c := range cs {
		c, err := s.check(c)
		if err != nil {
			proofs[i].Err = err
			continue
		}
		proofs[i].TTL = c.TTL
		a := &ballots{Redlock: s, claim: c, number: s.number.Add(1), began: time.Now()}
		a.clear()
		asked, at = append(asked, a), append(at, i)
		who, what := s.packQuorum(c, c.Token, a.number)
		names, packs = append(names, c.Name), append(packs, who, what)
		short = min(short, c.TTL)
	}
	if len(asked) == 0 {
		return proofs, nil
	}
	packs[0] = strconv.Itoa(len(asked))
	p := s.ask(s.nodes, patience(short), nil, proveScript, s.keys.of(names...), packs)
	defer p.end()
	for i, waiting := 0, len(asked); waiting > 0 && i < len(s.nodes); i++ {
		switch r, err := p.next(ctx); {
		case err == errLate:
			for _, a := range asked {
				a.mute()
			}
			waiting = 0
		case err != nil:
			waiting = 0
		default:
			waiting = hear(asked, r)
		}
	}
	unknown := 0
	var whole error
	for i, a := range asked {
		proof := &proofs[at[i]]
		s.proveOne(ctx, a, proof)
		if !driver.Certain(proof.Err) {
			unknown++
			whole = proof.Err
		}
	}
	s.fill(asked, proofs, at)
	if unknown == len(asked) {
		return proofs, whole
	}
	return proofs, nil
}

func allUnknown(n int, err error) []driver.Proof {
	proofs := make([]driver.Proof, n)
	for i := range proofs {
		proofs[i].Err = err
	}
	return proofs
}

// hear reads a node's answer about all claims, and returns how many of them are
// still to be judged.
func hear(asked []*ballots, r returned) (waiting int) {
	all, err := r.m.ToArray()
	if r.err == nil && err == nil && len(all) != len(asked) {
		err = errShort
	}
	for i, a := range asked {
		switch {
		case r.err != nil:
			a.set(r.node.index, failedBallot(r.err))
		case err != nil:
			a.set(r.node.index, failedBallot(err))
		default:
			a.set(r.node.index, readBallot(a.claim.Name, all[i]))
		}
		if verdict, _ := a.renewed(); verdict == quorum.Wait || verdict == quorum.Refused && !a.sure() {
			waiting++
		}
	}
	return waiting
}

// renewed judges the answers so far. A claim that is asked for without its token
// is asked for as if anew.
func (a *ballots) renewed() (quorum.Verdict, uint64) {
	if a.claim.Token != 0 {
		return quorum.Renewed(a.votes), a.claim.Token
	}
	return quorum.Asked(a.votes)
}

// proveOne makes a proof of the answers about a claim.
func (s *Redlock) proveOne(ctx context.Context, a *ballots, p *driver.Proof) {
	verdict, fence := a.renewed()
	first := a.all
	if verdict == quorum.Settle {
		// Some nodes know it under a smaller counter.
		var err error
		if fence, verdict, err = a.settle(ctx, verdict, fence, s.nodes); err != nil {
			p.Err = err
			return
		}
		s.owed.granted(a.claim, fence)
	}
	switch verdict {
	case quorum.Granted:
		if a.claim.Token == 0 {
			a.claim.Token = fence
			p.Grant = &driver.Grant{Token: fence, Fence: fence, TTL: p.TTL, TookOver: a.tookOver()}
		}
		return
	case quorum.Refused:
		p.Err = a.notHeld()
	default:
		a.all = first
		p.Err = doubt(tooFew(a.all))
		if err := over(ctx); err != nil {
			p.Err = err
		}
	}
}

// fill gives the claims that were proved to the nodes that lack them, in the
// background, for no longer than they were proved for.
func (s *Redlock) fill(asked []*ballots, proofs []driver.Proof, at []int) {
	for i, a := range asked {
		if proofs[at[i]].Err != nil {
			continue
		}
		var some []*member
		for j, b := range a.all {
			if b.Kind == quorum.Behind || b.Kind == quorum.Held && b.free {
				some = append(some, s.nodes[j])
			}
		}
		left := a.claim
		left.TTL -= time.Since(a.began)
		if len(some) == 0 || left.TTL <= 0 {
			continue
		}
		each := s.owed.filled(a.claim, a.number, len(some), time.Now().Add(left.TTL))
		who, what := s.packQuorum(left, a.claim.Token, a.number)
		s.tell(some, &request{
			script: settleScript, keys: s.keys.of(left.Name), args: []string{"1", who, what}, until: time.Now().Add(min(left.TTL, patience(a.claim.TTL))), each: each,
		})
	}
}
