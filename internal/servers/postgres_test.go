package servers_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/internal/servers"
)

// value runs a query of one value.
func value(t *testing.T, p *servers.PostgresServer, sql string) string {
	t.Helper()
	rows := must[[][]string](t)(p.Query("postgres", sql))
	if len(rows) != 1 || len(rows[0]) != 1 {
		t.Fatalf("%s = %v, want one value", sql, rows)
	}
	return rows[0][0]
}

func TestPostgresSurvivesKillAndStop(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t, servers.PostgresDurable(), servers.PostgresSet("work_mem", "7MB"))
	if got := value(t, p, "SHOW work_mem"); got != "7MB" {
		t.Errorf("work_mem = %s, want the one that was set", got)
	}
	must[[][]string](t)(p.Query("postgres", "CREATE TABLE t AS SELECT 42 AS n"))
	client := must[*servers.PG](t)(servers.DialPG(p.Addr(), "postgres", "postgres"))
	defer client.Close()
	ok(t, p.Kill())
	if _, err := client.Query("SELECT 1"); err == nil {
		t.Error("a backend answers after Kill")
	}
	ok(t, p.Restart())
	if got := value(t, p, "SELECT n FROM t"); got != "42" {
		t.Errorf("after Kill and Restart: %s", got)
	}
	idle := must[*servers.PG](t)(servers.DialPG(p.Addr(), "postgres", "postgres"))
	defer idle.Close()
	ok(t, p.Stop()) // does not wait for the idle client
	ok(t, p.Restart())
	if got := value(t, p, "SELECT n FROM t"); got != "42" {
		t.Errorf("after Stop and Restart: %s", got)
	}
}

func TestPausedPostgresAnswersAfterResume(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	client := must[*servers.PG](t)(servers.DialPG(p.Addr(), "postgres", "postgres"))
	defer client.Close()
	ok(t, p.Pause())
	ok(t, client.SetDeadline(time.Now().Add(200*time.Millisecond)))
	if _, err := client.Query("SELECT 1"); err == nil {
		t.Error("a paused backend answers")
	}
	ok(t, p.Resume())
	if got := value(t, p, "SELECT 1"); got != "1" {
		t.Errorf("after Resume: %s", got)
	}
}

func TestPostgresErrorsAreTyped(t *testing.T) {
	t.Parallel()
	_, err := servers.SharedPostgres(t).Query("postgres", "SELECT 1/0")
	var pg servers.PGError
	if !errors.As(err, &pg) || !strings.HasPrefix(string(pg), "22012 ") {
		t.Fatalf("got %v, want a PGError with its code", err)
	}
}

func TestStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	primary := servers.Postgres(t)
	standby := servers.PostgresStandby(t, primary)
	if got := value(t, standby, "SELECT pg_is_in_recovery()"); got != "t" {
		t.Fatalf("a standby's pg_is_in_recovery() = %s", got)
	}
	ok(t, primary.Kill())
	ok(t, standby.Promote())
	if got := value(t, standby, "SELECT pg_is_in_recovery()"); got != "f" {
		t.Fatalf("pg_is_in_recovery() = %s after the promotion", got)
	}
}

func TestPgBouncerSharesConnections(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	b := servers.PgBouncer(t, p, "transaction", 1)
	pid := func() string {
		rows := must[[][]string](t)(b.Query("postgres", "SELECT pg_backend_pid()"))
		return rows[0][0]
	}
	if one, two := pid(), pid(); one != two {
		t.Errorf("two clients on backends %s and %s, want the pool's only one", one, two)
	}
	ok(t, b.Restart())
	pid()
}
