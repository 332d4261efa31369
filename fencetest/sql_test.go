package fencetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dibslock/dibs/fence"
	"github.com/dibslock/dibs/internal/servers"
)

// each runs a test on every kind of database.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// check checks in a transaction of its own.
func check(ctx context.Context, db *sql.DB, guard fence.SQL, lease fence.Fenced) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := guard.Check(ctx, tx, lease); err != nil {
		return err
	}
	return tx.Commit()
}

// stale fails the test unless err says that newest was seen.
func stale(t *testing.T, err error, name string, offered, newest uint64) {
	t.Helper()
	got, ok := errors.AsType[*fence.StaleError](err)
	if !ok || *got != (fence.StaleError{Name: name, Offered: offered, Newest: newest}) || !errors.Is(err, fence.ErrStale) {
		t.Errorf("offered %d: %v (%T), want a StaleError with %d", offered, err, err, newest)
	}
}

func TestSQLRefusesOlderTokens(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, guard := k.open(t)
		ctx := t.Context()
		const big = 1 << 53
		for _, step := range []struct{ offered, newest uint64 }{
			{7, 7},
			{7, 7},
			{6, 7},
			{8, 8},
			{7, 8},
			{8, 8},
			{1, 8},
			{big + 1, big + 1},
			{big, big + 1},
			{big + 2, big + 2},
			{fence.MaxToken - 1, fence.MaxToken - 1},
			{fence.MaxToken, fence.MaxToken},
			{fence.MaxToken - 1, fence.MaxToken},
		} {
			err := check(ctx, db, guard, fence.Of("a", step.offered))
			if step.offered < step.newest {
				stale(t, err, "a", step.offered, step.newest)
			} else if err != nil {
				t.Errorf("offered %d: %v", step.offered, err)
			}
		}
		if err := check(ctx, db, guard, fence.Of("b", 1)); err != nil {
			t.Errorf("another name: %v", err)
		}
	})
}

// TestSQLCreateAtOnce: the instances of a program start together.
func TestSQLCreateAtOnce(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, guard := k.open(t)
		for i := range 5 {
			guard.Table = fmt.Sprintf("tokens%d", i)
			errs := make([]error, 8)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() { errs[i] = guard.Create(t.Context(), db) })
			}
			wg.Wait()
			must(t, errors.Join(errs...))
		}
	})
}

// TestSQLTellsNamesApart has names that a database may take for the same.
func TestSQLTellsNamesApart(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, guard := k.open(t)
		long := strings.Repeat("x", 511)
		for i, name := range []string{"ä", "a", "A", "a ", " a", "ae", "æ", "ß", "ss", "'\";--", `\`, "%", "e\u0301", "é", long + "a", long + "b", "日本", "🔒"} {
			must(t, check(t.Context(), db, guard, fence.Of(name, uint64(1000-i))))
		}
	})
}

func TestSQLRefusesWhatCannotBeCompared(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, guard := k.open(t)
		ctx := t.Context()
		if err := check(ctx, db, guard, fence.Of("a", 0)); !errors.Is(err, fence.ErrNoFence) {
			t.Errorf("fence 0: %v", err)
		}
		for what, bad := range map[string]struct {
			guard fence.SQL
			lease fence.Fenced
		}{
			"too large":    {guard, fence.Of("a", fence.MaxToken+1)},
			"no name":      {guard, fence.Of("", 1)},
			"a long name":  {guard, fence.Of(strings.Repeat("x", 513), 1)},
			"no dialect":   {fence.SQL{}, fence.Of("a", 1)},
			"a bad table":  {fence.SQL{Dialect: k.dialect, Table: "a; DROP TABLE accounts"}, fence.Of("a", 1)},
			"no table yet": {fence.SQL{Dialect: k.dialect, Table: "elsewhere"}, fence.Of("a", 1)},
		} {
			if err := check(ctx, db, bad.guard, bad.lease); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("%s: %v, want an error of its own", what, err)
			}
		}
		// None of them was taken for a contact.
		must(t, check(ctx, db, guard, fence.Of("a", 1)))
	})
}

// TestSQLForgetsWhatWasRolledBack: a check counts if its transaction does.
func TestSQLForgetsWhatWasRolledBack(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, guard := k.open(t)
		ctx := t.Context()
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		must(t, guard.Check(ctx, tx, fence.Of("a", 9)))
		must(t, tx.Rollback())
		must(t, check(ctx, db, guard, fence.Of("a", 8)))
	})
}

func TestSQLStoreIsShared(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, guard := k.open(t)
		one, two := guard.Store(db), guard.Store(db)
		for _, step := range []struct {
			store           fence.Store
			offered, newest uint64
		}{{one, 5, 5}, {two, 4, 5}, {two, 6, 6}, {one, 5, 6}, {one, 6, 6}} {
			newest, err := step.store.Raise(t.Context(), "a", step.offered)
			if err != nil || newest != step.newest {
				t.Errorf("Raise(%d) = %d, %v; want %d", step.offered, newest, err, step.newest)
			}
		}
	})
}

// TestColumnOnTheRow is the form without a table: the row that is written has the
// newest token in a column.
func TestColumnOnTheRow(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, _ := k.open(t)
		_, err := db.Exec("INSERT INTO accounts (name, balance, fence) VALUES ('a', 100, 0)")
		must(t, err)
		write := func(balance, token int64) int64 {
			t.Helper()
			done, err := db.Exec(k.q("UPDATE accounts SET balance = ?, fence = ? WHERE name = 'a' AND fence <= ?"), balance, token, token)
			must(t, err)
			n, err := done.RowsAffected()
			must(t, err)
			return n
		}
		if write(150, 8) != 1 || write(70, 7) != 0 || write(160, 8) != 1 {
			t.Error("the column lets an older token through, or holds up the newest")
		}
		var balance int
		must(t, db.QueryRow("SELECT balance FROM accounts WHERE name = 'a'").Scan(&balance))
		if balance != 160 {
			t.Errorf("balance %d, want 160", balance)
		}
	})
}

// TestPgx checks in transactions of a connection and of a pool.
func TestPgx(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	source := k.fresh(t)
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, source)
	must(t, err)
	defer pool.Close()
	guard := fence.SQL{Dialect: fence.Postgres, Table: "public.tokens"}
	create, err := guard.Schema()
	must(t, err)
	_, err = pool.Exec(ctx, create)
	must(t, err)

	inTx := func(lease fence.Fenced) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return fence.CheckPgx(ctx, guard, tx, lease) })
	}
	must(t, inTx(fence.Of("a", 1<<60)))
	stale(t, inTx(fence.Of("a", 1<<60-1)), "a", 1<<60-1, 1<<60)
	if err := inTx(fence.Of("a", 0)); !errors.Is(err, fence.ErrNoFence) {
		t.Errorf("fence 0: %v", err)
	}
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
	must(t, err)
	defer tx.Rollback(ctx)
	must(t, fence.CheckPgx(ctx, guard, tx.(*pgxpool.Tx), fence.Of("a", 1<<60+1)))
	must(t, tx.Commit(ctx))
	if err := fence.CheckPgx(ctx, fence.SQL{Dialect: fence.MySQL}, tx, fence.Of("a", 1)); err == nil {
		t.Error("pgx with the dialect of MySQL")
	}
}

// TestSimpleProtocol is behind a pooler that keeps no prepared statements.
func TestSimpleProtocol(t *testing.T) {
	t.Parallel()
	p, name := servers.SharedPostgres(t), freshName()
	_, err := p.Query("postgres", "CREATE DATABASE "+name)
	must(t, err)
	db := kinds[0].dial(t, p.URL(name)+"&default_query_exec_mode=simple_protocol")
	guard := fence.SQL{Dialect: fence.Postgres}
	must(t, guard.Create(t.Context(), db))
	must(t, check(t.Context(), db, guard, fence.Of("a", 2)))
	stale(t, check(t.Context(), db, guard, fence.Of("a", 1)), "a", 1, 2)
}
