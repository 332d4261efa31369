package pglock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// TestPausedHoldersLoseNoUpdate has holders that stand still for longer than their
// TTL between reading a number and writing it back, as a paused process does. With
// the guard every write that is committed counts. The control run without it, on
// the same schedule, loses some, which shows that the pauses struck.
func TestPausedHoldersLoseNoUpdate(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	for name, guarded := range map[string]bool{"guarded": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rawURL := newStore(t, p)
			admin := psql(t, rawURL)
			exec(t, admin, "CREATE TABLE counter AS SELECT 0 AS n")
			var commits, refusals atomic.Int64
			var wg sync.WaitGroup
			for seed := range uint64(5) {
				wg.Go(func() { // ends after its turns
					h := holder{store: open(t, rawURL), url: rawURL, rand: rand.New(rand.NewPCG(seed, 7))}
					for range 10 {
						done, err := h.turn(t.Context(), guarded)
						switch {
						case err != nil:
							t.Error(err)
							return
						case done:
							commits.Add(1)
						default:
							refusals.Add(1)
						}
					}
				})
			}
			wg.Wait()
			n := value[int64](t, admin, "SELECT n FROM counter")
			t.Logf("%d commits, %d refusals, counted %d", commits.Load(), refusals.Load(), n)
			if guarded && n != commits.Load() {
				t.Errorf("%d updates were lost", commits.Load()-n)
			}
			if !guarded && n == commits.Load() {
				t.Error("nothing was lost without the guard: the pauses did not strike")
			}
		})
	}
}

// holder is one that stands still now and then.
type holder struct {
	store driver.Store
	url   string
	rand  *rand.Rand
}

func (h *holder) pause() {
	if h.rand.IntN(2) == 0 {
		time.Sleep(time.Duration(150+h.rand.IntN(150)) * time.Millisecond)
	}
}

// turn adds one to the counter under the lock, and tells whether it was committed.
func (h *holder) turn(ctx context.Context, guarded bool) (bool, error) {
	c := drivertest.Mutex("counter", 100*time.Millisecond)
	g, err := h.store.Acquire(ctx, c)
	for errors.Is(err, driver.ErrHeld) {
		time.Sleep(time.Duration(1+h.rand.IntN(10)) * time.Millisecond)
		g, err = h.store.Acquire(ctx, c)
	}
	if err != nil {
		return false, err
	}
	defer h.store.Release(ctx, c) // whatever became of it
	conn, err := pgx.Connect(ctx, h.url)
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return false, err
	}
	done, err := h.work(ctx, tx, fenced{c.Name, g.Fence}, guarded)
	if guarded && conn.IsClosed() {
		return false, nil // the server ended what it took for a frozen transaction
	}
	return done, err
}

// work adds one to the counter in tx.
func (h *holder) work(ctx context.Context, tx pgx.Tx, lease fenced, guarded bool) (bool, error) {
	h.pause()
	if guarded {
		if err := pglock.Guard(ctx, tx, lease); err != nil {
			return false, only(err, driver.ErrNotHeld)
		}
		// The holder is slow here, and not idle, so the server lets it go on.
		if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
			return false, err
		}
	}
	var n int
	if err := tx.QueryRow(ctx, "SELECT n FROM counter").Scan(&n); err != nil {
		return false, err
	}
	h.pause()
	if _, err := tx.Exec(ctx, "UPDATE counter SET n = $1", n+1); err != nil {
		return false, err
	}
	h.pause()
	return true, tx.Commit(ctx)
}

// only is err unless it is what may happen.
func only(err, allowed error) error {
	if errors.Is(err, allowed) {
		return nil
	}
	return err
}
