package pglock

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// A grave is a session that failed on our side: its backend may live on for a
// while, with its locks.
type grave struct {
	pid   uint32
	birth string
}

// connect makes the session. The error is what requests are answered.
func (w *warden) connect() error {
	s, err := w.dial.connect(w.a.life)
	if err == nil {
		err = w.setUp(s)
		if err != nil {
			s.drop()
		}
	}
	if err == nil {
		w.s = s
		return nil
	}
	if w.a.life.Err() != nil {
		return driver.ErrClosed
	}
	var re *driver.RejectedError
	if errors.As(err, &re) {
		return re
	}
	if err := refusedForGood(w.a.schema, err); err != nil {
		return err
	}
	return unknown(err)
}

func (w *warden) setUp(s *session) error {
	if s.pooled {
		return driver.Rejectedf("", "pgadvisory: there is a connection pooler between this program and the server (the server process is %d, the pooler says %d). In transaction mode a lock outlives its client, and two clients get the same lock. Connect to the server itself, or use the lease table (postgres://), or say ?pooler=session if the pooler is in session mode", s.pid, s.PgConn().PID())
	}
	ctx, cancel := context.WithTimeout(w.a.life, callWait)
	defer cancel()
	names := []string{"try", "tryOne", "tryShared", "unlock", "unlockOne", "ping", "hashtext", "see", "unsee", "tell", "may"}
	if w.a.opts.fenced {
		names = append(names, "tryFenced", "tryFencedOne", "firstFence", "tokens")
	}
	if err := s.prepare(ctx, w.a.sql, names); err != nil {
		return err
	}
	w.seen = false
	if w.dial.hear != nil {
		if _, err := s.PgConn().Exec(ctx, "LISTEN "+pgx.Identifier{w.a.channel}.Sanitize()+"; LISTEN "+pgx.Identifier{askChannel}.Sanitize()).ReadAll(); err != nil {
			return err
		}
		if w.a.waited() {
			if err := s.PgConn().ExecPrepared(ctx, "see", [][]byte{w.a.flag}, nil, nil).Read().Err; err != nil {
				return err
			}
			w.seen = true
		}
	}
	if err := s.QueryRow(ctx, w.a.sql.named("birth")).Scan(&w.birth); err != nil {
		return err
	}
	return w.bury(ctx, s)
}

// bury ends the backend of a session that failed, so that its locks are free now
// and not when the server notices. Behind a pooler it may have become somebody
// else's.
func (w *warden) bury(ctx context.Context, s *session) error {
	g := w.grave
	w.grave = grave{}
	if g.pid == 0 || w.dial.pooler == poolerSession {
		return nil
	}
	_, err := s.Exec(ctx, w.a.sql.named("bury"), int64(g.pid), g.birth)
	if code(err) == codePrivilege {
		return nil // the server finds out by itself
	}
	return err
}

// die ends the session after an error, and all claims on it.
func (w *warden) die(error) {
	w.grave = grave{w.s.pid, w.birth}
	w.s.drop()
	w.s = nil
	for _, l := range w.held {
		for _, c := range l.claims {
			if c.end != nil {
				c.end.Stop()
			}
			w.a.subs.tell(digestOf(c.ID), news{kind: newsEnded})
		}
	}
	clear(w.held)
	if w.a.life.Err() != nil {
		return
	}
	_ = w.connect() // if it fails, the next request tries again, and is told why
	w.a.tellAll()
}

// limit is how long the server may be silent. A session whose locks would not be
// trusted any more anyway need not be waited for.
func (w *warden) limit() time.Duration {
	if len(w.held) == 0 {
		w.least = callWait
	}
	return max(w.least, callWait/2)
}
