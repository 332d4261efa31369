package sqlitelock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

const (
	onceProcesses = 4  // at once
	onceCallers   = 25 // in each
)

// TestTortureOnce has a hundred callers in four processes do the same things once
// each, while one process after the other is killed. Each thing is an effect in a
// transaction with its guard: in the end it is there exactly once. It is a long run
// if DIBS_TORTURE_FOR is set.
func TestTortureOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	keys, kills := 20, 6
	if os.Getenv("DIBS_TORTURE_FOR") != "" {
		keys, kills = 1000, 150
	}
	dir := fastDir(t)
	path, effects := filepath.Join(dir, "locks.db"), filepath.Join(dir, "effects.db")
	db := openEffects(t, effects)
	args := []string{path, effects, strconv.Itoa(keys)}
	procs := make([]*process, onceProcesses)
	for i := range procs {
		procs[i] = start(t, "once", args...)
	}
	for range kills {
		time.Sleep(50*time.Millisecond + rand.N(150*time.Millisecond))
		i := rand.IntN(len(procs))
		_ = procs[i].cmd.Process.Signal(syscall.SIGKILL) // one that is done already may be gone
		_ = procs[i].cmd.Wait()
		procs[i] = start(t, "once", args...)
	}
	for _, p := range procs {
		p.says(t, "done")
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("a process ended with %v", err)
		}
	}
	count := func(query string) (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("SELECT count(*) FROM effects"); n != keys {
		t.Errorf("%d effects of %d things", n, keys)
	}
	if n := count("SELECT count(DISTINCT key) FROM effects"); n != keys {
		t.Errorf("%d of %d things have an effect", n, keys)
	}
	runs := count("SELECT count(*) FROM runs")
	if again := count("SELECT count(*) FROM runs WHERE again"); runs-keys > again {
		t.Errorf("%d runs of %d things, of which %d knew of one before them", runs, keys, again)
	}
	t.Logf("%d things, %d kills: %d runs, %d effects", keys, kills, runs, keys)
	client := onceClient(t.Context(), t, path)
	for i := range keys {
		if s, err := client.Once(thing(i), time.Hour).State(t.Context()); err != nil || s.Status != dibs.Done {
			t.Errorf("%s: %+v, %v", thing(i), s, err)
		}
	}
}

func thing(i int) string { return fmt.Sprintf("thing/%d", i) }

func openEffects(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := effectsDB(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), `CREATE TABLE guards (key TEXT PRIMARY KEY);
		CREATE TABLE effects (key TEXT); CREATE TABLE runs (key TEXT, again BOOL)`)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// effectsDB opens the resource, whose transactions wait for one another.
func effectsDB(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)")
}

func onceClient(ctx context.Context, t testing.TB, path string) *dibs.Client {
	t.Helper()
	c, err := dibs.New(openStore(t, path, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(ctx)) })
	return c
}

// playOnce is a process that does everything that is not done: args are the store's
// path, the effects' path, and how many things there are.
func playOnce(args []string, s driver.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	keys, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	db, err := effectsDB(args[1])
	if err != nil {
		return err
	}
	defer db.Close()
	client, err := dibs.New(s, &dibs.Options{Settings: dibs.Settings{TTL: 5 * time.Second}})
	if err != nil {
		return err
	}
	errs := make([]error, onceCallers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { // ends when everything is done
			for _, k := range rand.Perm(keys) {
				if errs[i] == nil {
					errs[i] = doThing(ctx, client, db, thing(k))
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Println("done", keys)
	return client.Close(ctx)
}

// doThing calls until it is done.
func doThing(ctx context.Context, client *dibs.Client, db *sql.DB, key string) error {
	o := client.Once(key, time.Hour)
	call := o.Call
	if rand.IntN(2) == 0 {
		call = o.TryCall
	}
	for {
		_, _, err := call(ctx, func(ctx context.Context, run dibs.Run) ([]byte, error) {
			if err := effect(ctx, db, key, run.Again); err != nil {
				return nil, err
			}
			time.Sleep(rand.N(3 * time.Millisecond)) // the effect is there, and nobody knows
			return nil, nil
		})
		if !errors.Is(err, dibs.ErrHeld) {
			return err
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// effect takes effect once, in a transaction with its guard.
func effect(ctx context.Context, db *sql.DB, key string, again bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	if _, err := tx.ExecContext(ctx, "INSERT INTO runs VALUES (?, ?)", key, again); err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, "INSERT INTO guards VALUES (?) ON CONFLICT DO NOTHING", key)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil {
		return err
	} else if n == 1 {
		if _, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", key); err != nil {
			return err
		}
	}
	return tx.Commit()
}
