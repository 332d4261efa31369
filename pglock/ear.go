package pglock

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

const (
	// silence is how long nothing is heard before the ear asks whether its server
	// is there.
	silence = 10 * time.Second
	// newsPoll is how often a client that can't LISTEN looks for news.
	newsPoll = 200 * time.Millisecond
)

// An ear is the connection on which a client hears what others tell it. It is made
// when somebody waits for the first time. Behind a pooler that gives a connection
// away after each transaction nothing can be heard, so there it looks instead.
type ear struct {
	t *Table
	// hear is called with what was told; again when something may have been missed.
	hear  func(text string)
	again func()

	mu      sync.Mutex // guards all below
	started bool
	heard   bool          // ever
	up      chan struct{} // closed while it hears
	work    sync.WaitGroup
}

func newEar(t *Table) *ear {
	return &ear{t: t, up: make(chan struct{}), again: t.subs.ask, hear: func(text string) {
		if x, id, err := decodeNews(text); err == nil { // anybody may write to a channel
			t.subs.tell(id, x)
		}
	}}
}

// listen returns when the ear hears.
func (e *ear) listen(ctx context.Context) error {
	e.mu.Lock()
	if !e.started && e.t.life.Err() == nil {
		e.started = true
		e.work.Go(e.run) // until the store is closed
	}
	up := e.up
	e.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return left(ctx)
	case <-e.t.life.Done():
		return driver.ErrClosed
	}
}

func (e *ear) close() { e.work.Wait() }

func (e *ear) run() {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		s, err := e.t.dial.connect(e.t.life)
		if err == nil {
			if s.pooled {
				s.bye()
				e.look()
				return
			}
			if e.attend(s) {
				wait = 50 * time.Millisecond
			}
		}
		if e.t.life.Err() != nil {
			return
		}
		pause(e.t.life, wait)
	}
}

// attend hears on s until that fails, and tells whether it heard at all.
func (e *ear) attend(s *session) bool {
	defer s.drop()
	ctx, cancel := context.WithTimeout(e.t.life, callWait)
	_, err := s.Exec(ctx, "LISTEN "+pgx.Identifier{e.t.channel}.Sanitize(), pgx.QueryExecModeSimpleProtocol)
	cancel()
	if err != nil {
		return false
	}
	e.mu.Lock()
	close(e.up)
	before := e.heard
	e.heard = true
	e.mu.Unlock()
	if before {
		e.again() // what was told meanwhile was not heard
	}
	for e.next(s) {
	}
	e.mu.Lock()
	e.up = make(chan struct{})
	e.mu.Unlock()
	e.again()
	return true
}

// next hears one thing, or finds that the server is still there.
func (e *ear) next(s *session) bool {
	ctx, cancel := context.WithTimeout(e.t.life, silence)
	n, err := s.WaitForNotification(ctx)
	cancel()
	switch {
	case err == nil:
		if n.Channel == e.t.channel {
			e.hear(n.Payload)
		}
		return true
	case s.IsClosed() || e.t.life.Err() != nil:
		return false
	}
	ctx, cancel = context.WithTimeout(e.t.life, callWait/2)
	defer cancel()
	_, err = s.PgConn().Exec(ctx, "SELECT 1").ReadAll()
	return err == nil
}

// look asks again and again for what is waited for, and whether what is held is
// still there.
func (e *ear) look() {
	e.mu.Lock()
	close(e.up)
	e.mu.Unlock()
	for round := 1; e.t.life.Err() == nil; round++ {
		pause(e.t.life, newsPoll)
		if round%5 == 0 {
			e.again() // whatever else might have been told
		}
		names, mine := e.t.subs.looksFor()
		if len(names) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(e.t.life, callWait)
		found := make(map[digest]driver.State)
		err := e.t.call(ctx, func(ctx context.Context, s *session) error {
			return s.run(ctx, e.t.sql.named("news"), []any{names}, func(rows pgx.Rows) error { return e.found(rows, found) })
		})
		cancel()
		if err != nil {
			continue // it is tried again
		}
		for _, id := range mine { // granted before the look began
			switch found[id] {
			case driver.Held, driver.Handed:
			case driver.Revoked:
				e.t.subs.tell(id, news{kind: newsRevoked})
			default:
				e.t.subs.tell(id, news{kind: newsEnded})
			}
		}
	}
}

// found notes one claim that look found, and tells its waiter to ask if it was
// handed over: by now it is too late to say for how long.
func (e *ear) found(rows pgx.Rows, found map[digest]driver.State) error {
	x := news{kind: newsHanded}
	var state int16
	var token int64
	if err := rows.Scan(&x.id, &state, &x.place, &token); err != nil {
		return err
	}
	id := digestOf(string(x.id))
	found[id] = driver.State(state)
	if found[id] == driver.Handed {
		x.grant.Token = uint64(token)
		e.t.subs.tell(id, x)
	}
	return nil
}
