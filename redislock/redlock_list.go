package redislock

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

var _ driver.Lister = (*Redlock)(nil)

// listGrace is how long the other nodes may take when a majority has answered.
const listGrace = 500 * time.Millisecond

// List yields the claims that a majority of the nodes knows, each as of about one
// instant. A node that does not answer may know any: a claim that would have a
// majority with it is listed too. What has no majority is nobody's, and is not.
func (s *Redlock) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		names, err := s.list(ctx, prefix)
		if err != nil {
			yield(driver.Holder{}, err)
			return
		}
		if s.keys.plain && !slices.Contains(names, prefix) && driver.CheckName(prefix) == nil { // see Store.listStranger
			all, err := s.look(ctx, []string{prefix})
			if !errors.Is(err, driver.ErrRejected) && !yieldBallots(all, err, yield) {
				return
			}
		}
		for some := range slices.Chunk(names, listCount) {
			if all, err := s.look(ctx, some); !yieldBallots(all, err, yield) {
				return
			}
		}
	}
}

// yieldBallots yields what look found, and tells whether to go on.
func yieldBallots(all []*ballots, err error, yield func(driver.Holder, error) bool) bool {
	if err != nil {
		yield(driver.Holder{}, err)
		return false
	}
	for _, a := range all {
		if h := a.holder(); h != nil && !yield(*h, nil) {
			return false
		}
	}
	return true
}

// list returns the names that begin with prefix and that some node knows, sorted.
func (s *Redlock) list(ctx context.Context, prefix string) ([]string, error) {
	var found []string
	err := s.visit(ctx, func(ctx context.Context, n *member, c *conn, _ string) (func(), error) {
		names, err := s.scan(ctx, c, prefix)
		return func() { found = append(found, names...) }, err
	})
	slices.Sort(found)
	return slices.Compact(found), err
}

// scan returns the names that begin with prefix and that a node knows.
func (s *Redlock) scan(ctx context.Context, c *conn, prefix string) (names []string, err error) {
	pattern := glob(s.keys.prefix+"{"+escape(prefix)) + "*}"
	for cursor := uint64(0); ; {
		e, err := c.do(ctx, c.client.B().Scan().Cursor(cursor).Match(pattern).Count(scanCount).Build()).AsScanEntry()
		if err != nil {
			return nil, err
		}
		for _, key := range e.Elements {
			if name, ok := within(key, s.keys.prefix+"{"); ok {
				names = append(names, strings.Clone(name))
			}
		}
		if cursor = e.Cursor; cursor == 0 {
			return names, nil
		}
	}
}

// look asks the nodes who has names.
func (s *Redlock) look(ctx context.Context, names []string) ([]*ballots, error) {
	all := make([]*ballots, len(names))
	for i, name := range names {
		all[i] = &ballots{Redlock: s, claim: driver.Claim{Name: name}}
		all[i].clear()
	}
	err := s.visit(ctx, func(ctx context.Context, n *member, c *conn, marker string) (func(), error) {
		m, err := c.eval(ctx, lookScript, s.keys.of(names...), []string{marker, strconv.Itoa(len(names))}).ToMessage()
		if err != nil {
			return nil, err
		}
		rows, err := m.ToArray()
		switch {
		case err != nil:
			return nil, err
		case novote(m):
			return nil, errNoVote
		case len(rows) != len(names):
			return nil, errShort
		}
		return func() {
			for i, a := range all {
				a.set(n.index, readBallot(a.claim.Name, rows[i]))
			}
		}, nil
	})
	return all, err
}

// visit calls f for every node that votes, side by side, on a connection that no
// claim waits for, and then what f returned, one after the other. It is an error if
// fewer than a majority answer.
func (s *Redlock) visit(ctx context.Context, f func(ctx context.Context, n *member, c *conn, marker string) (func(), error)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	type answer struct {
		node *member
		note func()
		err  error
	}
	answers := make(chan answer, len(s.nodes))
	for _, n := range s.nodes {
		go func() { // ends with its call, and so with ctx
			_, err := n.conn(calls)
			var c *conn
			if err == nil {
				c, err = n.link.apart(calls)
			}
			var note func()
			if err == nil {
				note, err = f(calls, n, c, n.standing.Load().id)
			}
			answers <- answer{n, note, err}
		}()
	}
	a := &ballots{Redlock: s}
	a.clear()
	good := 0
	collect(answers, len(s.nodes), listGrace, func(r answer) (enough, all bool) {
		if r.err != nil {
			a.set(r.node.index, failedBallot(r.node.failed(calls, r.err)))
			return false, false
		}
		a.set(r.node.index, ballot{Vote: quorum.Vote{Kind: quorum.Held}})
		r.note()
		good++
		return good >= quorum.Majority(len(s.nodes)), false
	})
	switch {
	case good >= quorum.Majority(len(s.nodes)):
		return nil
	case s.life.Err() != nil:
		return errRedlockClosed
	case ctx.Err() != nil:
		return over(ctx)
	}
	return tooFew(a.all)
}

// holder is who has the name that the nodes were asked about, or nil.
func (a *ballots) holder() *driver.Holder {
	groups := a.blockers()
	if len(groups) == 0 {
		return nil
	}
	silent := 0
	for _, b := range a.all {
		if b.Kind != quorum.Held {
			silent++
		}
	}
	q := quorum.Majority(len(a.all))
	if len(groups[0])+silent < q {
		return nil
	}
	h := holderOf(groups[0])
	if len(groups[0]) >= q { // it is gone when so few have it that no majority does
		var left []time.Duration
		for _, b := range groups[0] {
			left = append(left, b.holder.Left)
		}
		slices.Sort(left)
		h.Left = left[len(left)-q]
	}
	return h
}
