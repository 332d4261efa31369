package pglock

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dibslock/dibs/driver"
)

const (
	// askChannel is where all clients of a database hear questions.
	askChannel = "dibs.ask"
	// maxQuestions is how many questions wait for an answer; more are not heard.
	maxQuestions = 64
	// maxTold is how long what is told may be: PostgreSQL takes less than 8000 bytes.
	maxTold = 7900
)

// A question is what a client asks all others, as JSON on askChannel.
type question struct {
	To      string      `json:"to"`      // the channel on which it hears the answers
	Dialect string      `json:"dialect"` // how its names become keys: who does otherwise knows other names
	Prefix  string      `json:"prefix,omitempty"`
	Revoke  *revokeNews `json:"revoke,omitempty"` // nil: who holds what begins with Prefix?
}

// A revokeNews is a driver.Revocation on its way.
type revokeNews struct {
	Name  string `json:"name"`
	Token uint64 `json:"token,string"`
	Now   bool   `json:"now,omitempty"`
}

// An answer is what one client answers, perhaps in several parts.
type answer struct {
	Last    bool            `json:"last"`              // no more will come from these sessions
	PIDs    []uint32        `json:"pids"`              // its sessions
	Refused string          `json:"refused,omitempty"` // the role that may not ask
	Done    bool            `json:"done,omitempty"`    // it was revoked
	Failed  string          `json:"failed,omitempty"`  // it was found, and what became of it is unknown
	Holders []driver.Holder `json:"holders,omitempty"` // to a revocation: who holds the name

	from []*blocker // those sessions that hold anything
}

// A clerk answers other clients' questions, one after the other, so that no
// session waits for that. It begins with the first question.
type clerk struct {
	a    *Advisory
	todo chan heardQuestion
	once sync.Once
	work sync.WaitGroup
}

type heardQuestion struct {
	text string
	pid  uint32 // of who asks: the server says so
}

func newClerk(a *Advisory) *clerk {
	return &clerk{a: a, todo: make(chan heardQuestion, maxQuestions)}
}

// hear takes a question. It never blocks.
func (c *clerk) hear(text string, pid uint32) {
	c.once.Do(func() { c.work.Go(c.run) }) // until the store is closed
	select {
	case c.todo <- heardQuestion{text, pid}:
	default:
	}
}

// close waits for the clerk. Nothing is heard any more.
func (c *clerk) close() { c.work.Wait() }

func (c *clerk) run() {
	for {
		select {
		case <-c.a.life.Done():
			return
		case h := <-c.todo:
			var q question
			if json.Unmarshal([]byte(h.text), &q) != nil || q.To == "" {
				continue // anybody may write to a channel
			}
			ctx, cancel := context.WithTimeout(c.a.life, callWait)
			c.reply(ctx, q, h.pid)
			cancel()
		}
	}
}

// reply answers q. What fails is not answered: who asks waits for so long and no
// longer.
func (c *clerk) reply(ctx context.Context, q question, pid uint32) {
	var x answer
	for _, w := range c.a.sessions {
		r := w.do(ctx, &request{kind: requestList})
		if r.err != nil {
			return
		}
		x.PIDs = append(x.PIDs, r.pid)
		if q.Revoke == nil && q.Dialect == c.a.dialect() {
			x.Holders = append(x.Holders, slices.DeleteFunc(r.holders, func(h driver.Holder) bool { return !strings.HasPrefix(h.Name, q.Prefix) })...)
		}
	}
	role, ok, err := c.may(ctx, pid, q.Revoke != nil)
	switch {
	case err != nil:
		return
	case !ok:
		x.Refused, x.Holders = role, nil
	case q.Revoke != nil && q.Dialect == c.a.dialect():
		c.revoke(ctx, *q.Revoke, &x)
	}
	for _, part := range x.parts() {
		_, err := c.a.sessions[0].query(ctx, "tell", q.To, part)
		for code(err) == codeLockTimeout && ctx.Err() == nil { // another notifies, and takes long
			_, err = c.a.sessions[0].query(ctx, "tell", q.To, part)
		}
		if err != nil {
			return
		}
	}
}

// may tells whether the role of who asks may ask this, and its name. To take a
// claim away it needs what it takes to end the session: the same role, one above
// it, or pg_signal_backend. To see who holds, pg_read_all_stats will do.
func (c *clerk) may(ctx context.Context, pid uint32, revokes bool) (role string, ok bool, err error) {
	row, err := c.a.sessions[0].query(ctx, "may", strconv.FormatUint(uint64(pid), 10), strconv.FormatBool(revokes))
	if err != nil || len(row) < 2 {
		return "", false, err
	}
	return row[0], row[1] == "t", nil
}

func (c *clerk) revoke(ctx context.Context, r revokeNews, x *answer) {
	k, err := c.a.key(ctx, r.Name)
	if err != nil {
		return
	}
	res := c.a.session(k).do(ctx, &request{kind: requestRevoke, key: k, claim: driver.Claim{Name: r.Name, Token: r.Token}, now: r.Now})
	x.Holders = res.holders
	switch {
	case res.err == nil:
		x.Done = true
	case !driver.Certain(res.err):
		x.Failed = res.err.Error()
	}
}

// parts are x as it is told: each short enough.
func (x answer) parts() (parts []string) {
	all := x.Holders
	for {
		x.Holders = all
		size := 0
		for i, h := range all {
			b, _ := json.Marshal(h)
			if size += len(b) + 1; size > maxTold-300-12*len(x.PIDs) && i > 0 {
				x.Holders = all[:i]
				break
			}
		}
		all = all[len(x.Holders):]
		x.Last = len(all) == 0
		b, _ := json.Marshal(x)
		for len(b) > maxTold && len(x.Holders) == 1 { // of one holder: its note
			h := x.Holders[0]
			h.Note = strings.ToValidUTF8(h.Note[:len(h.Note)/2], "")
			x.Holders = []driver.Holder{h}
			b, _ = json.Marshal(x)
		}
		parts = append(parts, string(b))
		if x.Last {
			return parts
		}
	}
}

// dialect is how names become keys.
func (a *Advisory) dialect() string {
	if a.opts.hash == hashSHA {
		return a.opts.hash + " " + a.opts.namespace
	}
	return a.opts.hash
}
