package fencetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/fence"
)

// The two holders: the older takes 30 from the account, the newer adds 50.
const (
	older, newer       = 41, 42
	start              = 100
	olderAdd, newerAdd = -30, 50
)

// TestEveryOrder runs the transactions of an older and a newer holder side by side,
// in every order of their steps (check, read, write, commit), at every level of
// isolation. Whatever the order, no update may be lost, and the older is refused
// once the newer was let in. The control run without the check shows that there are
// orders that lose one.
func TestEveryOrder(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, guard := k.open(t)
		for _, level := range k.levels {
			for _, guarded := range []bool{true, false} {
				if !guarded && level != sql.LevelReadCommitted {
					continue // these notice some conflicts by themselves
				}
				t.Run(fmt.Sprintf("%v guarded=%v", level, guarded), func(t *testing.T) {
					t.Parallel()
					run := orders{kind: k, db: db, guard: guard, level: level, guarded: guarded, name: freshName()}
					lost := run.all(t)
					if !guarded && lost == 0 {
						t.Error("no order lost an update without the check: the test shows nothing")
					}
				})
			}
		}
	})
}

type orders struct {
	kind
	db      *sql.DB
	guard   fence.SQL
	level   sql.IsolationLevel
	guarded bool
	name    string
}

// all runs every order, eight at a time, and returns how many lost an update.
func (o orders) all(t *testing.T) int64 {
	var lost, refused, conflicts atomic.Int64
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, order := range interleavings(4, 4) {
		slots <- struct{}{}
		wg.Go(func() { // ends with its order
			defer func() { <-slots }()
			r := o.run(t, fmt.Sprintf("%s-%d", o.name, i), order)
			if r.lost {
				lost.Add(1)
			}
			if errors.Is(r.older.err, fence.ErrStale) {
				refused.Add(1)
			}
			if conflict(r.older.err) || conflict(r.newer.err) {
				conflicts.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("70 orders: %d lost an update, %d refused the older, %d were a conflict", lost.Load(), refused.Load(), conflicts.Load())
	// Above READ COMMITTED the database may find the conflict before the fence does.
	if o.guarded && refused.Load()+conflicts.Load() == 0 {
		t.Error("the older was never stopped")
	}
	return lost.Load()
}

type result struct {
	older, newer *side
	lost         bool
}

// run runs one order: a letter a step, o of the older and n of the newer.
func (o orders) run(t *testing.T, name, order string) result {
	if o.dialect == fence.SQLite {
		o.db, o.guard = o.open(t) // one writer a file, and this is about two
	}
	_, err := o.db.Exec(o.q("INSERT INTO accounts (name, balance, fence) VALUES (?, ?, 0)"), name, start)
	if err != nil {
		t.Error(err)
		return result{older: &side{}, newer: &side{}}
	}
	var clock atomic.Int64
	r := result{
		older: &side{orders: o, clock: &clock, lease: fence.Of(name, older), add: olderAdd},
		newer: &side{orders: o, clock: &clock, lease: fence.Of(name, newer), add: newerAdd},
	}
	r.older.begin(t.Context())
	r.newer.begin(t.Context())
	for _, c := range order {
		s := r.older
		if c == 'n' {
			s = r.newer
		}
		s.next()
	}
	r.older.end()
	r.newer.end()

	bad := func(format string, args ...any) {
		t.Errorf("%s: %s (older: %v, newer: %v)", order, fmt.Sprintf(format, args...), r.older.err, r.newer.err)
	}
	want := start
	for _, s := range []*side{r.older, r.newer} {
		switch {
		case s.err == nil:
			want += s.add
		case !conflict(s.err) && !(o.guarded && s == r.older && errors.Is(s.err, fence.ErrStale)):
			bad("an error that has no place here")
		}
	}
	var got int
	if err := o.db.QueryRow(o.q("SELECT balance FROM accounts WHERE name = ?"), name).Scan(&got); err != nil {
		bad("%v", err)
	}
	r.lost = got != want
	if !o.guarded {
		return r
	}
	if r.lost {
		bad("balance %d, want %d", got, want)
	}
	if r.newer.checked != 0 && r.newer.checked < r.older.asked && r.newer.err == nil && r.older.err == nil {
		bad("the older was let in after the newer")
	}
	o.inOrder(t, name)
	return r
}

// inOrder fails the test if an older token was written after a newer one.
func (o orders) inOrder(t *testing.T, name string) {
	t.Helper()
	if tokens := o.writes(t, o.db, name); len(tokens) > 1 && tokens[0] > tokens[1] {
		t.Errorf("%s: written in the order %v", name, tokens)
	}
}

// writes are the tokens that name was written under, in order.
func (k kind) writes(t *testing.T, db *sql.DB, name string) (tokens []int64) {
	t.Helper()
	rows, err := db.Query(k.q("SELECT token FROM writes WHERE name = ? ORDER BY seq"), name)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Error(err)
		}
		tokens = append(tokens, token)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	return tokens
}

// A side is one holder's transaction, which goes on a step when it is told to.
type side struct {
	orders
	clock *atomic.Int64 // counts what happens
	lease fence.Fenced
	add   int

	steps          chan chan struct{} // one to do, and where to say that it is done
	done           chan struct{}
	err            error // the outcome, after done
	asked, checked int64 // when the check was sent, and when it was passed
}

func (s *side) begin(ctx context.Context) {
	s.steps = make(chan chan struct{}, 4)
	s.done = make(chan struct{})
	go func() { // ends when steps is closed
		defer close(s.done)
		s.err = s.transact(ctx)
		for said := range s.steps {
			close(said)
		}
	}()
}

// blocked is how long a step may take before it is taken to wait for the other
// side. It decides which orders are tried, and not what is right.
const blocked = 40 * time.Millisecond

// next has the side do its next step, and returns when it is done or waits for the
// other side.
func (s *side) next() {
	said := make(chan struct{})
	s.steps <- said
	select {
	case <-said:
	case <-time.After(blocked):
	}
}

func (s *side) end() {
	close(s.steps)
	<-s.done
}

func (s *side) transact(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var balance int
	for _, step := range []func() error{
		func() error {
			if !s.guarded {
				return nil
			}
			s.asked = s.clock.Add(1)
			err := s.guard.Check(ctx, tx, s.lease)
			s.checked = s.clock.Add(1)
			return err
		},
		func() error {
			return tx.QueryRowContext(ctx, s.q("SELECT balance FROM accounts WHERE name = ?"), s.lease.Name()).Scan(&balance)
		},
		func() error {
			_, err := tx.ExecContext(ctx, s.q("UPDATE accounts SET balance = ? WHERE name = ?"), balance+s.add, s.lease.Name())
			if err == nil {
				_, err = tx.ExecContext(ctx, s.q("INSERT INTO writes (name, token) VALUES (?, ?)"), s.lease.Name(), int64(s.lease.Fence()))
			}
			return err
		},
		tx.Commit,
	} {
		said, ok := <-s.steps
		if !ok {
			return errors.New("no more steps")
		}
		err := step()
		close(said)
		if err != nil {
			return err
		}
	}
	return nil
}

// interleavings are all orders of a steps of the older and b of the newer.
func interleavings(a, b int) []string {
	if a == 0 || b == 0 {
		return []string{strings.Repeat("o", a) + strings.Repeat("n", b)}
	}
	var all []string
	for _, rest := range interleavings(a-1, b) {
		all = append(all, "o"+rest)
	}
	for _, rest := range interleavings(a, b-1) {
		all = append(all, "n"+rest)
	}
	return all
}
