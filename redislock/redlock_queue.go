package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

const (
	maxQueue = 512 // requests that wait for one node
	maxBatch = 64  // of them are sent at once
)

// A request is a script about claims that some nodes are to run.
type request struct {
	script *script
	keys   []string
	args   []string // but for the node's marker, which comes first
	until  time.Time
	each   func(returned)  // nil, or called with every node's answer
	heard  chan<- returned // nil, or has room for every node's answer
}

// returned is one node's answer to a request.
type returned struct {
	node *member
	m    rueidis.RedisMessage
	err  error
	late bool // it may have been run after requests that were sent after it
}

// send puts r behind what the node has still to answer, unless there is too much.
func (n *member) send(r *request) error {
	select {
	case n.queue <- r:
		return nil
	default:
		return fmt.Errorf("the node %s: it has more to answer than it can", n.addr)
	}
}

func (r *request) returned(a returned) {
	if r.each != nil {
		r.each(a)
	}
	if r.heard != nil {
		r.heard <- a
	}
}

// serve sends the node one request after the other, or as many at once as came
// meanwhile, until the queue is closed: whatever was put into it first the node
// runs first. Nothing else uses the connection as a rule, so that the goroutine
// which writes a request is the one that reads the answer.
func (n *member) serve() {
	batch := make([]*request, 0, maxBatch)
	idle := time.NewTimer(pingEvery)
	defer idle.Stop()
	for {
		var r *request
		select {
		case r = <-n.queue:
		case <-idle.C:
			n.ping()
			idle.Reset(pingEvery)
			continue
		}
		for batch = batch[:0]; r != nil; {
			batch = append(batch, r)
			if len(batch) == maxBatch {
				break
			}
			select {
			case r = <-n.queue:
				continue
			default:
			}
			break
		}
		if len(batch) == 0 {
			return // the queue was closed
		}
		n.run(batch)
		clear(batch)
		idle.Reset(pingEvery)
	}
}

// run sends requests together and returns the answers. The connection is given up
// when the last of them has waited for long enough.
func (n *member) run(batch []*request) {
	now, until := time.Now(), batch[0].until
	kept := batch[:0]
	for _, r := range batch {
		if now.After(r.until) {
			r.returned(returned{node: n, err: fmt.Errorf("the node %s: it was busy for too long", n.addr)})
			continue
		}
		kept = append(kept, r)
		if r.until.After(until) {
			until = r.until
		}
	}
	if len(kept) == 0 {
		return
	}
	c, marker, err := n.vote(until)
	if err != nil {
		for _, r := range kept {
			r.returned(returned{node: n, err: err})
		}
		return
	}
	n.limit(c, until)
	defer n.watch.Stop()
	if len(kept) == 1 {
		n.hand(c, marker, kept[0], c.client.Do(context.Background(), kept[0].command(c, marker)))
		return
	}
	cmds := make(rueidis.Commands, len(kept))
	for i, r := range kept {
		cmds[i] = r.command(c, marker)
	}
	for i, res := range c.client.DoMulti(context.Background(), cmds...) {
		n.hand(c, marker, kept[i], res)
	}
}

// vote returns the connection to the node and its marker, if it may vote. One that
// is being dialled is waited for until a time.
func (n *member) vote(until time.Time) (*conn, string, error) {
	c := n.link.present()
	if c == nil {
		ctx, cancel := context.WithDeadline(n.life, until)
		defer cancel()
		var err error
		if c, err = n.conn(ctx); err != nil {
			if n.life.Err() != nil {
				err = errRedlockClosed
			}
			return nil, "", err
		}
	}
	st := n.standing.Load()
	return c, st.id, st.err
}

// limit has c cut at a time, until n.watch is stopped. A call that it ends has no
// answer.
func (n *member) limit(c *conn, until time.Time) {
	if n.watch == nil || n.watched != c {
		n.watch, n.watched = time.AfterFunc(time.Until(until), c.cut), c
		return
	}
	n.watch.Reset(time.Until(until))
}

func (r *request) command(c *conn, marker string) rueidis.Completed {
	return c.client.B().Evalsha().Sha1(r.script.sha()).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(marker).Arg(r.args...).Build()
}

// hand returns the node's answer to a request. A node that does not know the
// script has certainly not run it, and is sent its text.
func (n *member) hand(c *conn, marker string, r *request, res rueidis.RedisResult) {
	a := returned{node: n}
	if e, ok := rueidis.IsRedisErr(res.Error()); ok && e.IsNoScript() {
		a.late = true
		b := c.client.B().Eval().Script(r.script.text()).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(marker).Arg(r.args...)
		res = c.client.Do(context.Background(), b.Build())
	}
	a.m, a.err = res.ToMessage()
	if a.err != nil {
		_, heard := rueidis.IsRedisErr(a.err)
		a.err = n.failed(n.life, a.err)
		if !heard {
			a.err = &unheardError{a.err}
		}
	} else if novote(a.m) {
		a.err = fmt.Errorf("the node %s has lost its memory: %w; see dibs redlock status", n.addr, errNoVote)
	}
	r.returned(a)
}

// ping asks a node that has had nothing to do whether it lives.
func (n *member) ping() {
	c := n.link.present()
	if c == nil {
		return
	}
	n.limit(c, time.Now().Add(pingPatience))
	defer n.watch.Stop()
	if c.client.Do(context.Background(), c.client.B().Ping().Build()).NonRedisError() != nil {
		c.cut()
	}
}

// novote tells whether m is the one word of a node without its marker.
func novote(m rueidis.RedisMessage) bool {
	if !m.IsArray() {
		return false
	}
	all, _ := m.ToArray()
	if len(all) != 1 || all[0].IsArray() {
		return false
	}
	word, _ := all[0].ToString()
	return word == "novote"
}

// unheard tells whether a call that ended with err may have been, or may still
// be, applied.
func unheard(err error) bool {
	if err == nil {
		return false
	}
	var e *unheardError
	return errors.As(err, &e)
}

// An unheardError is that of a request that was sent and not answered.
type unheardError struct{ error }

func (e *unheardError) Unwrap() error { return e.error }

// packQuorum packs c as the scripts of a quorum read it: who asks, after the fence,
// and what for.
func (s *Redlock) packQuorum(c driver.Claim, fence uint64, number uint64) (who, what string) {
	b := make([]byte, 0, 192)
	b = append(strconv.AppendUint(b, fence, 10), ' ')
	for _, s := range []string{s.client, c.ID} {
		b = append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
	}
	b = append(b, ' ')
	size := len(b)
	for _, n := range [...]int64{micros(c.TTL), micros(c.Keep), micros(c.Delay), int64(c.Units), int64(number)} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = append(b, c.Note...)
	all := rueidis.BinaryString(b)
	return all[:size], all[size:]
}
