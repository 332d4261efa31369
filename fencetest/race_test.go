package fencetest_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibslock/dibs/fence"
)

// TestAcceptedTokensNeverDecrease has holders of three names, some of them long
// gone, read and write at random. What was accepted was written in the order of the
// tokens, and every update of it is there.
func TestAcceptedTokensNeverDecrease(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for _, level := range k.levels {
			t.Run(level.String(), func(t *testing.T) {
				t.Parallel()
				db, guard := k.open(t)
				r := race{kind: k, db: db, guard: guard, level: level}
				for range 3 {
					name := freshName()
					_, err := db.Exec(k.q("INSERT INTO accounts (name, balance, fence) VALUES (?, 0, 0)"), name)
					must(t, err)
					r.names = append(r.names, name)
				}
				r.run(t)
			})
		}
	})
}

type race struct {
	kind
	db     *sql.DB
	guard  fence.SQL
	level  sql.IsolationLevel
	names  []string
	newest [3]atomic.Uint64 // granted so far, by name
}

func (r *race) run(t *testing.T) {
	var wg sync.WaitGroup
	var accepted [3]atomic.Int64
	var refused atomic.Int64
	for seed := range uint64(6) {
		wg.Go(func() { // ends after its turns
			random := rand.New(rand.NewPCG(seed, 11))
			for range 25 {
				i := random.IntN(len(r.names))
				switch err := r.turn(t.Context(), i, random); {
				case err == nil:
					accepted[i].Add(1)
				case errors.Is(err, fence.ErrStale):
					refused.Add(1)
				case !conflict(err):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i, name := range r.names {
		tokens := r.writes(t, r.db, name)
		if !slices.IsSorted(tokens) {
			t.Errorf("%s was written under the tokens %v", name, tokens)
		}
		var balance int64
		must(t, r.db.QueryRow(r.q("SELECT balance FROM accounts WHERE name = ?"), name).Scan(&balance))
		if n := accepted[i].Load(); balance != n || int64(len(tokens)) != n || n == 0 {
			t.Errorf("%s: %d writes were accepted, %d are there, and the balance is %d", name, n, len(tokens), balance)
		}
	}
	if refused.Load() == 0 {
		t.Error("nobody was refused: the test shows nothing")
	}
}

// turn adds one under a token of the last few.
func (r *race) turn(ctx context.Context, i int, random *rand.Rand) error {
	token := r.newest[i].Add(uint64(random.IntN(2)))
	token = max(1, token-min(token, uint64(random.IntN(3))))
	lease := fence.Of(r.names[i], token)
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{Isolation: r.level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := r.guard.Check(ctx, tx, lease); err != nil {
		return err
	}
	var balance int
	if err := tx.QueryRowContext(ctx, r.q("SELECT balance FROM accounts WHERE name = ?"), lease.Name()).Scan(&balance); err != nil {
		return err
	}
	for range random.IntN(20) {
		runtime.Gosched()
	}
	if _, err := tx.ExecContext(ctx, r.q("UPDATE accounts SET balance = ? WHERE name = ?"), balance+1, lease.Name()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, r.q("INSERT INTO writes (name, token) VALUES (?, ?)"), lease.Name(), int64(token)); err != nil {
		return err
	}
	return tx.Commit()
}
