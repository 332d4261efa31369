package pglock

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

const (
	// answerWait is how long sessions that look like those of dibs are waited for, from
	// the last answer on, and strangerWait how long others.
	answerWait, strangerWait = 10 * time.Second, time.Second
	// glance is how often it is looked whether they are still there.
	glance = 250 * time.Millisecond
)

// An inquiry asks all clients of the database a question, on a connection of its
// own. PostgreSQL knows who holds which key, but no names and no notes: those only
// the holders know.
type inquiry struct {
	s       *session
	to      string
	holders map[uint32]*blocker // of advisory locks, that have not answered
}

// A blocker is a session that holds advisory locks.
type blocker struct {
	pid             uint32
	keys            map[key]bool // true: shared
	app, user, addr string
}

// String tells who it is.
func (b *blocker) String() string {
	from := b.addr
	if from == "" {
		from = "this host or unknown"
	}
	return fmt.Sprintf("session %d (application %q, role %s, from %s)", b.pid, b.app, b.user, from)
}

// List yields who holds, as the holders answer. A lock that no client of dibs
// answers for is listed if its name is known: prefix, or with key=raw its key. A
// session that looks like one of dibs and does not answer is an error, which comes
// last: what it holds is missing.
func (a *Advisory) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		var found []driver.Holder
		var refused error
		err := a.inquire(ctx, question{Prefix: prefix}, func(q *inquiry, x answer) (bool, error) {
			if x.Refused != "" && len(x.from) > 0 {
				refused = denied(fmt.Errorf("the role %s may not ask who holds: it takes the role of the holders, or pg_read_all_stats", x.Refused))
			}
			found = append(found, x.Holders...)
			return false, nil
		}, func(q *inquiry) error {
			found = append(found, a.strangers(ctx, q, prefix)...)
			for _, b := range q.holders {
				if q.alike(b) && refused == nil {
					refused = unknown(fmt.Errorf("%s does not answer: what it holds is not listed", b))
				}
			}
			return nil
		})
		if err != nil {
			yield(driver.Holder{}, err)
			return
		}
		slices.SortStableFunc(found, func(x, y driver.Holder) int {
			return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Token, y.Token))
		})
		for _, h := range found {
			if !yield(h, nil) {
				return
			}
		}
		if refused != nil {
			yield(driver.Holder{}, refused)
		}
	}
}

// strangers are the locks of those who did not answer, as far as their names are
// known.
func (a *Advisory) strangers(ctx context.Context, q *inquiry, prefix string) (hs []driver.Holder) {
	var named key
	var ok bool
	if driver.CheckName(prefix) == nil {
		k, err := a.key(ctx, prefix)
		named, ok = k, err == nil
	}
	for _, b := range q.holders {
		for k, shared := range b.keys {
			h := driver.Holder{Name: prefix, State: driver.Held, Units: 1, Capacity: 1, Note: "no client of dibs that answers: " + b.String(), Foreign: true}
			if shared {
				h.Capacity = driver.Unlimited
			}
			switch raw := k.raw(); {
			case a.opts.hash == keyRaw && strings.HasPrefix(raw, prefix):
				h.Name = raw
			case !ok || k != named:
				continue
			}
			hs = append(hs, h)
		}
	}
	return hs
}

// Revoke asks the holder to let go: no other can free a lock of PostgreSQL alone. A
// holder that is frozen or cut off, or is another program, does not answer: then
// the error tells whose session it is, and what else it would lose with it.
func (a *Advisory) Revoke(ctx context.Context, r driver.Revocation) error {
	if err := driver.CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Reason) > driver.MaxNote || !utf8.ValidString(r.Reason) {
		return driver.Rejectedf(r.Name, "the reason must be valid UTF-8 of at most %d bytes", driver.MaxNote)
	}
	k, err := a.key(ctx, r.Name)
	if err != nil {
		return err
	}
	done := false
	gone := &driver.NotHeldError{Name: r.Name}
	q := question{Revoke: &revokeNews{Name: r.Name, Token: r.Token, Now: r.Now}}
	err = a.inquire(ctx, q, func(q *inquiry, x answer) (bool, error) {
		switch {
		case x.Refused != "" && slices.ContainsFunc(x.from, func(b *blocker) bool { return b.holds(k) }):
			return false, denied(fmt.Errorf("the role %s may not take it away: it takes the role of the holder, or pg_signal_backend", x.Refused))
		case x.Failed != "":
			return false, unknown(fmt.Errorf("the holder says: %s", x.Failed))
		case len(x.Holders) > 0:
			gone.By = &x.Holders[0]
		}
		done = done || x.Done
		return done || q.holderOf(k) == nil, nil
	}, func(q *inquiry) error {
		b := q.holderOf(k)
		if b == nil || done {
			return nil
		}
		return unknown(fmt.Errorf("%q is held by %s, which does not answer: it is another program, or frozen, or cut off. SELECT pg_terminate_backend(%d) ends it, and with it %d other advisory locks", r.Name, b, b.pid, len(b.keys)-1))
	})
	switch {
	case err != nil:
		return err
	case !done:
		return gone
	}
	return nil
}

// holderOf is a session that holds k and has not answered.
func (q *inquiry) holderOf(k key) *blocker {
	for _, b := range q.holders {
		if b.holds(k) {
			return b
		}
	}
	return nil
}

func (b *blocker) holds(k key) bool {
	_, ok := b.keys[k]
	return ok
}

// inquire asks ask, and hands each answer to each, and an empty one now and then,
// until that has enough, all holders have answered or it takes too long; then it
// calls end.
func (a *Advisory) inquire(ctx context.Context, ask question, each func(*inquiry, answer) (enough bool, err error), end func(*inquiry) error) error {
	if ctx.Err() != nil {
		return left(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.life, func() { cancel(driver.ErrClosed) })()
	err := a.ask(ctx, ask, each, end)
	switch {
	case err == nil || driver.Certain(err):
		return err
	case ctx.Err() != nil:
		return left(ctx)
	}
	if e := refusedForGood(a.schema, err); e != nil {
		return e
	}
	return unknown(err)
}

func (a *Advisory) ask(ctx context.Context, ask question, each func(*inquiry, answer) (bool, error), end func(*inquiry) error) error {
	s, err := a.dial.connect(ctx)
	if err != nil {
		return err
	}
	defer s.drop()
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	q := &inquiry{s: s, to: "dibs.answer." + hex.EncodeToString(id), holders: make(map[uint32]*blocker)}
	// A session with locks waits for nothing for long. On this one are none, and to
	// ask it may have to wait for other commits that notify.
	if _, err := s.PgConn().Exec(ctx, "SET lock_timeout = '5s'; LISTEN "+pgx.Identifier{q.to}.Sanitize()).ReadAll(); err != nil {
		return err
	}
	if err := q.look(ctx, a); err != nil {
		return err
	}
	ask.To, ask.Dialect = q.to, a.dialect()
	text, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	if len(q.holders) > 0 {
		if _, err := s.Exec(ctx, a.sql.named("tell"), askChannel, string(text)); err != nil {
			return err
		}
	}
	for heard := time.Now(); len(q.holders) > 0; {
		x, err := q.next(ctx, time.Now().Add(glance))
		if err != nil {
			return err
		}
		if x == nil {
			if time.Since(heard) > q.patience(a.patience) {
				break // nobody else will answer
			}
			if err := q.lookAgain(ctx, a); err != nil {
				return err
			}
			if enough, err := each(q, answer{}); enough || err != nil {
				if err != nil {
					return err
				}
				break
			}
			continue
		}
		heard = time.Now()
		if x.Last {
			for _, pid := range x.PIDs {
				if b := q.holders[pid]; b != nil {
					x.from = append(x.from, b)
				}
				delete(q.holders, pid)
			}
		}
		if enough, err := each(q, *x); enough || err != nil {
			if err != nil {
				return err
			}
			break
		}
	}
	return end(q)
}

// patience is how long to wait for those who have not answered; most is for those
// who look as if they would.
func (q *inquiry) patience(most time.Duration) time.Duration {
	for _, b := range q.holders {
		if q.alike(b) {
			return most
		}
	}
	return min(most, strangerWait)
}

// alike tells whether b looks like a session of dibs.
func (q *inquiry) alike(b *blocker) bool {
	return b.app == q.s.Config().RuntimeParams["application_name"]
}

// next is the next answer; nil: none has come by then.
func (q *inquiry) next(ctx context.Context, by time.Time) (*answer, error) {
	late, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	for {
		n, err := q.s.WaitForNotification(late)
		switch {
		case err != nil && ctx.Err() == nil && late.Err() != nil:
			return nil, nil
		case err != nil:
			return nil, err
		case n.Channel != q.to:
			continue
		}
		x := new(answer)
		if json.Unmarshal([]byte(n.Payload), x) == nil {
			return x, nil
		}
	}
}

// lookAgain forgets those who have let go of everything: they may be gone, and will
// not answer.
func (q *inquiry) lookAgain(ctx context.Context, a *Advisory) error {
	now := &inquiry{s: q.s, holders: make(map[uint32]*blocker)}
	if err := now.look(ctx, a); err != nil {
		return err
	}
	for pid := range q.holders {
		if b := now.holders[pid]; b != nil {
			q.holders[pid] = b
		} else {
			delete(q.holders, pid)
		}
	}
	return nil
}

// look finds who holds advisory locks in the database. Who only waits has the flag.
func (q *inquiry) look(ctx context.Context, a *Advisory) error {
	return q.s.run(ctx, a.sql.named("holders"), []any{string(a.flag)}, func(rows pgx.Rows) error {
		var b blocker
		var k key
		var shared bool
		var pid int32
		if err := rows.Scan(&pid, &k.k, &k.two, &shared, &b.app, &b.user, &b.addr); err != nil {
			return err
		}
		b.pid = uint32(pid)
		if q.holders[b.pid] == nil {
			b.keys = make(map[key]bool)
			q.holders[b.pid] = &b
		}
		q.holders[b.pid].keys[k] = shared
		return nil
	})
}

// raw is k as a name of key=raw.
func (k key) raw() string {
	if k.two {
		return strconv.FormatInt(k.k>>32, 10) + "," + strconv.FormatInt(int64(int32(k.k)), 10)
	}
	return strconv.FormatInt(k.k, 10)
}
