package redislock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

// A ballot is what one node answers about one claim.
type ballot struct {
	quorum.Vote
	before uint64 // the counter before the claim took the name, and
	took   bool   // whether it took it over
	free   bool   // nobody has the name
	other  bool   // the ID stands for another claim
	closed time.Duration
	id     string // of the claim in the way
	holder *driver.Holder
	err    error
}

// readBallot reads a node's reply about a claim on name.
func readBallot(name string, m rueidis.RedisMessage) (b ballot) {
	if s, err := m.ToString(); err == nil {
		return readMine(s)
	}
	rest, err := m.ToArray()
	f := fields{rest, err}
	switch word := f.text(); word {
	case "mine":
		b.Kind = quorum.Mine
	case "passed":
		b.Kind, b.Counter = quorum.Passed, f.number()
	case "behind":
		b.Kind = quorum.Behind
		if len(f.rest) > 0 {
			b.Counter = f.number()
		}
	case "free":
		b.Kind, b.free = quorum.Held, true
	case "held":
		b.Kind, b.free = quorum.Held, len(f.rest) == 0
		if len(f.rest) > 0 {
			b.closed, b.id = f.span(), f.text()
			h := &driver.Holder{Name: name, State: driver.State(f.number())}
			h.Token = f.number()
			h.Fence = h.Token
			h.Units = int(f.number())
			h.Capacity = h.Units
			h.Age, h.Left, h.TTL, h.Note = f.span(), f.span(), f.span(), f.text()
			b.Counter, b.holder = h.Token, h
		}
	case "failed":
		b.Kind, b.err = quorum.Failed, reply(name, f.text())
	default:
		if f.err == nil {
			f.err = errors.New("redlock: an unknown reply " + strconv.Quote(word))
		}
	}
	if f.err != nil {
		return ballot{Vote: quorum.Vote{Kind: quorum.Failed}, err: f.err}
	}
	return b
}

// readMine reads a reply in one string, "mine <counter> <counter before> <took
// over>" or "other".
func readMine(s string) ballot {
	if s == "other" {
		return ballot{Vote: quorum.Vote{Kind: quorum.Held}, other: true}
	}
	rest, mine := strings.CutPrefix(s, "mine ")
	counter, rest, _ := strings.Cut(rest, " ")
	before, took, _ := strings.Cut(rest, " ")
	c, err1 := strconv.ParseUint(counter, 10, 64)
	b, err2 := strconv.ParseUint(before, 10, 64)
	if !mine || err1 != nil || err2 != nil {
		return failedBallot(errors.New("redlock: an unknown reply " + strconv.Quote(s)))
	}
	return ballot{Vote: quorum.Vote{Kind: quorum.Mine, Counter: c}, before: b, took: took == "1"}
}

// failedBallot is the ballot of a node that did not answer.
func failedBallot(err error) ballot {
	b := ballot{Vote: quorum.Vote{Kind: quorum.Failed}, err: err}
	if errors.Is(err, errNoVote) {
		b.Kind = quorum.NoVote
	}
	return b
}

// votes are the votes of ballots.
func votes(bs []ballot) []quorum.Vote {
	vs := make([]quorum.Vote, len(bs))
	for i, b := range bs {
		vs[i] = b.Vote
	}
	return vs
}

// returned is one node's answer to a request.
type returned struct {
	node *member
	m    rueidis.RedisMessage
	err  error
}

// poll is a request that is under way to some nodes.
type poll struct {
	answers chan returned // each node's, also an error; has room for all
	detach  func() bool   // lets the calls outlive the ctx that they were made with
}

// ask sends a request to nodes, side by side; each may take d to answer. The calls
// end with ctx, until they are detached from it. each, if it is not nil, is called
// for every node when its call has ended.
func (s *Redlock) ask(ctx context.Context, nodes []*member, d time.Duration, each func(*member, error), sc *script, keys, claims []string, more ...string) poll {
	calls, cancel := context.WithTimeout(s.life, d)
	p := poll{make(chan returned, len(nodes)), context.AfterFunc(ctx, cancel)}
	left := new(atomic.Int32)
	left.Store(int32(len(nodes)))
	for _, n := range nodes {
		one := func() { // ends with the call, which is bounded by d
			m, err := n.eval(calls, sc, keys, claims, more...)
			if each != nil {
				each(n, err)
			}
			p.answers <- returned{n, m, err}
			if left.Add(-1) == 0 {
				p.detach()
				cancel()
			}
		}
		if !s.background(one) {
			p.answers <- returned{n, rueidis.RedisMessage{}, errRedlockClosed}
		}
	}
	return p
}

// unheard tells whether a call that ended with err may have been, or may still
// be, applied.
func unheard(err error) bool {
	var e *unheardError
	return errors.As(err, &e)
}

// An unheardError is that of a request that was sent and not answered.
type unheardError struct{ error }

func (e *unheardError) Unwrap() error { return e.error }

// packQuorum packs c as the scripts of a quorum read it.
func (s *Redlock) packQuorum(c driver.Claim, fence uint64, number uint64) string {
	b := make([]byte, 0, 160)
	b = append(strconv.AppendUint(b, fence, 10), ' ')
	for _, n := range []int64{micros(c.TTL), micros(c.Keep), micros(c.Delay), int64(c.Units), int64(number)} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	for _, s := range []string{s.client, c.ID} {
		b = append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
	}
	return rueidis.BinaryString(append(b, c.Note...))
}
