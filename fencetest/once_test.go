package fencetest_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

const (
	things  = 1000 // are to be done once each
	doers   = 4    // processes at once
	callers = 25   // in each
	perKill = 12   // how many things are done at most before the next kill
)

// TestTortureOnce has a hundred callers in four processes do the same thousand
// things once each, on every store that keeps records, while one process after the
// other is killed. Each thing is an effect in a transaction with its guard, and its
// run goes on for a while before that and after: in the end the effect is there
// exactly once.
func TestTortureOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	postgres, sqlite := kinds[0], kinds[2]
	for _, s := range []struct {
		name     string
		locks    func(t *testing.T) (url string)
		resource kind
	}{
		{"sqlite", func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "locks.db") }, sqlite},
		{"redis", func(t *testing.T) string {
			return "redis://" + servers.SharedRedis(t).Addr() + "/0?prefix=" + freshName()
		}, postgres},
		{"postgres", func(t *testing.T) string {
			url := postgres.fresh(t)
			must(t, pglock.Init(t.Context(), url))
			return url
		}, postgres},
	} {
		t.Run(s.name, func(t *testing.T) { tortureOnce(t, s.locks(t), s.resource) })
	}
}

func tortureOnce(t *testing.T, locks string, k kind) {
	source := k.fresh(t)
	db := k.dial(t, source)
	for _, create := range []string{
		"CREATE TABLE guards (thing TEXT PRIMARY KEY)",
		"CREATE TABLE effects (thing TEXT)",
		"CREATE TABLE runs (thing TEXT, again BOOL)",
	} {
		_, err := db.Exec(create)
		must(t, err)
	}
	var ps [doers]*child
	for i := range ps {
		ps[i] = startDoer(t, k, locks, source)
	}
	kills := 0
	for next := 1; next <= things; next += 1 + rand.IntN(perKill) {
		for count(t, db, "SELECT count(*) FROM guards") < next {
			time.Sleep(2 * time.Millisecond) // nothing tells of it
		}
		i := rand.IntN(doers)
		_ = ps[i].cmd.Process.Kill() // one that is done may be gone
		_ = ps[i].cmd.Wait()
		ps[i] = startDoer(t, k, locks, source)
		kills++
	}
	for _, p := range ps {
		if line := p.line(t); line != "done" {
			t.Errorf("a process said %q", line)
		}
		must(t, p.cmd.Wait())
	}
	effects := count(t, db, "SELECT count(*) FROM effects")
	if effects != things {
		t.Errorf("%d effects of %d things", effects, things)
	}
	if n := count(t, db, "SELECT count(DISTINCT thing) FROM effects"); n != things {
		t.Errorf("%d of %d things have an effect", n, things)
	}
	runs, again := count(t, db, "SELECT count(*) FROM runs"), count(t, db, "SELECT count(*) FROM runs WHERE again")
	if runs-things > again {
		t.Errorf("%d runs of %d things, of which %d knew of one before them", runs, things, again)
	}
	if runs == things {
		t.Error("no run was killed after its effect: the guards had nothing to do")
	}
	t.Logf("%d things, %d callers, %d kills: %d runs, %d of them knew of one before them, %d effects", things, doers*callers, kills, runs, again, effects)

	client, err := dibs.Open(t.Context(), locks, nil)
	must(t, err)
	defer func() { must(t, client.Close(t.Context())) }()
	for i := range things {
		if s, err := client.Once(thing(i), time.Hour).State(t.Context()); err != nil || s.Status != dibs.Done {
			t.Errorf("%s: %+v, %v", thing(i), s, err)
		}
	}
}

func thing(i int) string { return fmt.Sprintf("thing/%d", i) }

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}
