package pglock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
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
// TTL between reading a number and writing it back, as a paused process does, on 50
// schedules. With the guard every write that is committed counts. The control run
// without it, on the same schedules, loses some, which shows that the pauses struck.
func TestPausedHoldersLoseNoUpdate(t *testing.T) {
	t.Parallel()
	for name, guarded := range map[string]bool{"guarded": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRace(t, guarded)
			for seed := uint64(1); ; seed += 50 {
				struck := r.run(t, seed, 50, 16)
				if struck || t.Failed() {
					return
				}
				if r.ttl *= 2; r.ttl > 10*time.Second {
					t.Fatal("the pauses did not strike, or nobody got through between them")
				}
			}
		})
	}
}

// TestTortureOfTheGuard is the long run: see scripts/torture.sh.
func TestTortureOfTheGuard(t *testing.T) {
	if os.Getenv("DIBS_TORTURE_FOR") == "" {
		t.Skip("DIBS_TORTURE_FOR is not set")
	}
	seed, err := strconv.ParseUint(os.Getenv("DIBS_TORTURE_SEED"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if !newRace(t, true).run(t, seed, 10_000, 64) {
		t.Error("want some commits and some refusals")
	}
	if !newRace(t, false).run(t, seed, 1000, 64) {
		t.Error("nothing was lost without the guard: the pauses did not strike")
	}
}

// A race is between the holders of names, each of which guards a number.
type race struct {
	guarded bool
	ttl     time.Duration // pauses are longer; on a slow machine it takes more of it to get through
	url     string
	stores  [3]driver.Store
	admin   *pgx.Conn
}

func newRace(t *testing.T, guarded bool) *race {
	r := &race{guarded: guarded, ttl: 200 * time.Millisecond, url: newStore(t, servers.SharedPostgres(t))}
	for i := range r.stores {
		r.stores[i] = open(t, r.url)
	}
	r.admin = psql(t, r.url)
	exec(t, r.admin, "CREATE TABLE counter (seed bigint PRIMARY KEY, n int NOT NULL)")
	return r
}

// run runs n schedules, some at once, for they mostly sleep. An update that is lost
// with the guard is an error. It returns whether the pauses struck: without the
// guard some updates were lost, with it some were refused and some were not.
func (r *race) run(t *testing.T, seed, n uint64, atOnce int) bool {
	exec(t, r.admin, "INSERT INTO counter SELECT s, 0 FROM generate_series($1::bigint, $2::bigint) s", int64(seed), int64(seed+n-1))
	next := make(chan uint64)
	var commits, refusals atomic.Int64
	var done sync.Map // commits of each seed
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() { // ends when there are no more seeds
			for seed := range next {
				did, err := r.schedule(t.Context(), seed)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				done.Store(int64(seed), did)
				commits.Add(did)
				refusals.Add(int64(len(r.stores)) - did)
			}
		})
	}
	for s := range n {
		next <- seed + s
	}
	close(next)
	wg.Wait()
	rows, err := r.admin.Query(t.Context(), "SELECT seed, n FROM counter WHERE seed >= $1", int64(seed))
	if err != nil {
		t.Fatal(err)
	}
	var s, counted, lost int64
	_, err = pgx.ForEachRow(rows, []any{&s, &counted}, func() error {
		did, _ := done.Load(s)
		if did != counted {
			lost += did.(int64) - counted
			if r.guarded {
				t.Errorf("seed %d: %d commits, counted %d", s, did, counted)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seeds %d to %d, TTL %v: %d commits, %d refusals, %d lost", seed, seed+n-1, r.ttl, commits.Load(), refusals.Load(), lost)
	if r.guarded {
		return commits.Load() > 0 && refusals.Load() > 0
	}
	return lost > 0
}

// schedule has each client add one to the number of this seed, and returns how many
// say that they did.
func (r *race) schedule(ctx context.Context, seed uint64) (commits int64, err error) {
	var all atomic.Int64
	errs := make([]error, len(r.stores))
	var wg sync.WaitGroup
	for i, store := range r.stores {
		wg.Go(func() { // ends after its turn
			h := holder{race: r, store: store, seed: seed, rand: rand.New(rand.NewPCG(seed, uint64(i)))}
			did, err := h.turn(ctx)
			if errs[i] = err; did {
				all.Add(1)
			}
		})
	}
	wg.Wait()
	return all.Load(), errors.Join(errs...)
}

// holder is one that stands still now and then.
type holder struct {
	*race
	store driver.Store
	seed  uint64
	rand  *rand.Rand
}

func (h *holder) pause() {
	if h.rand.IntN(2) == 0 {
		time.Sleep(h.ttl * time.Duration(250+h.rand.IntN(150)) / 200)
	}
}

// turn adds one to the number under the lock, and tells whether it was committed.
func (h *holder) turn(ctx context.Context) (bool, error) {
	conn, err := pgx.Connect(ctx, h.url) // while nothing is held yet
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	c := drivertest.Mutex("counter/"+strconv.FormatUint(h.seed, 10), h.ttl)
	g, err := h.store.Acquire(ctx, c)
	for errors.Is(err, driver.ErrHeld) {
		time.Sleep(time.Duration(1+h.rand.IntN(10)) * time.Millisecond)
		g, err = h.store.Acquire(ctx, c)
	}
	if err != nil {
		return false, err
	}
	defer h.store.Release(ctx, c) // whatever became of it
	tx, err := conn.Begin(ctx)
	if err != nil {
		return false, err
	}
	done, err := h.work(ctx, tx, fenced{c.Name, g.Fence})
	if h.guarded && conn.IsClosed() {
		return false, nil // the server ended what it took for a frozen transaction
	}
	return done, err
}

// work adds one to the number in tx.
func (h *holder) work(ctx context.Context, tx pgx.Tx, lease fenced) (bool, error) {
	h.pause()
	if h.guarded {
		if err := pglock.Guard(ctx, tx, lease); err != nil {
			return false, only(err, driver.ErrNotHeld)
		}
		// The holder is slow here, and not idle, so the server lets it go on.
		if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
			return false, err
		}
	}
	var n int
	if err := tx.QueryRow(ctx, "SELECT n FROM counter WHERE seed = $1", int64(h.seed)).Scan(&n); err != nil {
		return false, err
	}
	h.pause()
	if _, err := tx.Exec(ctx, "UPDATE counter SET n = $1 WHERE seed = $2", n+1, int64(h.seed)); err != nil {
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
