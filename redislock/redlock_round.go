package redislock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

// A ballot is what one node answers about one claim.
type ballot struct {
	quorum.Vote
	before uint64 // the counter before the claim took the name, and
	took   bool   // whether it took it over, unless
	blank  bool   // the node does not know
	free   bool   // nobody has the name
	other  bool   // the ID stands for another claim
	taken  bool   // the name was taken away from the claim
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
		b.Kind, b.Counter = quorum.Behind, f.number()
		b.readHolder(name, &f)
	case "free":
		b.Kind, b.free = quorum.Held, true
	case "revoked":
		b.Kind, b.taken = quorum.Held, true
	case "held":
		b.Kind, b.free = quorum.Held, len(f.rest) == 0
		if b.readHolder(name, &f); b.holder != nil {
			b.Counter = b.holder.Token
		}
	case "failed":
		b.Kind, b.err = quorum.Failed, nodeReply(name, f.text())
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

// readHolder reads for how long the name is closed, and whose it is, if that follows.
func (b *ballot) readHolder(name string, f *fields) {
	if f.err != nil || len(f.rest) == 0 {
		return
	}
	b.closed, b.id = f.span(), f.text()
	h := &driver.Holder{Name: name, State: driver.State(f.number())}
	h.Token = f.number()
	h.Fence, h.Foreign = h.Token, h.Token == 0
	h.Units = int(f.number())
	h.Capacity = h.Units
	h.Age, h.Left, h.TTL, h.Note = f.span(), f.span(), f.span(), f.text()
	b.holder = h
}

// readReply reads a node's reply about one claim on name, which may be a list of
// one.
func readReply(name string, m rueidis.RedisMessage) ballot {
	if m.IsArray() {
		if all, err := m.ToArray(); err == nil && len(all) == 1 && all[0].IsArray() {
			m = all[0]
		}
	}
	return readBallot(name, m)
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
	return ballot{Vote: quorum.Vote{Kind: quorum.Mine, Counter: c}, before: b, took: took == "1", blank: took == "2"}
}

// failedBallot is the ballot of a node that did not answer.
func failedBallot(err error) ballot {
	b := ballot{Vote: quorum.Vote{Kind: quorum.Failed}, err: err}
	if errors.Is(err, errNoVote) {
		b.Kind = quorum.NoVote
	}
	return b
}

// poll is a request that is under way to some nodes, and the wait for answers.
type poll struct {
	answers chan returned
	late    *time.Timer
}

// ask sends a request to nodes, side by side, and does not wait: what is asked of a
// node first it runs first. Each may take d to answer. each, if it is not nil, is
// called with every node's answer, in no order; it must not block.
func (s *Redlock) ask(nodes []*member, d time.Duration, each func(returned), sc *script, keys, args []string) poll {
	p := poll{make(chan returned, len(nodes)), time.NewTimer(d)}
	s.tell(nodes, &request{script: sc, keys: keys, args: args, until: time.Now().Add(d), each: each, heard: p.answers})
	return p
}

// tell sends a request whose answers nobody waits for.
func (s *Redlock) tell(nodes []*member, r *request) {
	var refused []returned
	s.mu.Lock()
	for _, n := range nodes {
		err := errRedlockClosed
		if !s.closed {
			err = n.send(r)
		}
		if err != nil {
			refused = append(refused, returned{node: n, err: err})
		}
	}
	s.mu.Unlock()
	for _, a := range refused {
		r.returned(a)
	}
}

// next is the next answer. It fails when ctx has ended, with ctx's error, or no more
// answers come in time.
func (p poll) next(ctx context.Context) (returned, error) {
	select {
	case r := <-p.answers:
		return r, nil
	case <-ctx.Done():
		return returned{}, over(ctx)
	case <-p.late.C:
		return returned{}, errLate
	}
}

// end is called when nobody waits any more.
func (p poll) end() { p.late.Stop() }

var errLate = errors.New("no answer in time")
