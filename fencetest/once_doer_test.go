package fencetest_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	_ "github.com/dibslock/dibs/sqlitelock"
)

// doerVar makes a process one that does things: it is the kind of the resource.
const doerVar = "FENCETEST_DOER_AT"

// busy is how long the run of a thing takes at most before its effect, and after
// it.
const busy = 50 * time.Millisecond

func startDoer(t *testing.T, k kind, locks, source string) *child {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), doerVar+"="+k.name, urlVar+"="+source, locksVar+"="+locks)
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe() // its end is this process's
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()
	})
	return &child{cmd: cmd, out: bufio.NewScanner(stdout)}
}

// doer is the main of such a process: it ends when everything is done.
func doer() (exit int) {
	go func() { // ends with whoever started this process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := doAll(); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("done")
	return 0
}

func doAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == os.Getenv(doerVar) })]
	db, err := sql.Open(k.driver, os.Getenv(urlVar))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(callers)
	client, err := dibs.Open(ctx, os.Getenv(locksVar), &dibs.Options{Settings: dibs.Settings{TTL: 2 * time.Second}})
	if err != nil {
		return err
	}
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { // ends when everything is done
			for _, n := range rand.Perm(things) {
				if errs[i] == nil {
					errs[i] = k.do(ctx, client, db, thing(n))
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), client.Close(ctx))
}

// do calls until the thing is done, by this caller or by another.
func (k kind) do(ctx context.Context, client *dibs.Client, db *sql.DB, name string) error {
	o := client.Once(name, time.Hour)
	call := o.Call
	if rand.IntN(2) == 0 {
		call = o.TryCall
	}
	for {
		_, _, err := call(ctx, func(ctx context.Context, run dibs.Run) ([]byte, error) {
			time.Sleep(rand.N(busy))
			if err := k.effect(ctx, db, name, run.Again); err != nil {
				return nil, err
			}
			time.Sleep(rand.N(busy)) // the effect is there, and nobody knows
			return nil, nil
		})
		switch {
		case errors.Is(err, dibs.ErrHeld):
			time.Sleep(rand.N(20 * time.Millisecond))
		case errors.Is(err, dibs.ErrLost), errors.Is(err, dibs.ErrUnknown), ctx.Err() == nil && errors.Is(err, context.Canceled):
			// a machine that is too busy to renew: whether it is done is asked again
		default:
			return err
		}
	}
}

// effect takes effect once, in a transaction with its guard.
func (k kind) effect(ctx context.Context, db *sql.DB, name string, again bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	done, err := tx.ExecContext(ctx, k.q("INSERT INTO guards VALUES (?) ON CONFLICT DO NOTHING"), name)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	if err != nil {
		return err
	}
	if n == 1 {
		if _, err := tx.ExecContext(ctx, k.q("INSERT INTO effects VALUES (?)"), name); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, k.q("INSERT INTO runs VALUES (?, ?)"), name, again); err != nil {
		return err
	}
	return tx.Commit()
}
