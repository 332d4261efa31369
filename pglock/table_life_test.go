package pglock_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// walk uses everything that the table has, once, with two clients.
func walk(t *testing.T, a, b driver.Store) {
	t.Helper()
	held, g := drivertest.MustAcquire(t, a, mutex("walk"))
	if p := drivertest.RenewOne(t.Context(), a, held); p.Err != nil {
		t.Fatal(p.Err)
	}
	w := mutex("walk")
	w.Patience = 20 * time.Second
	place := refused(t, b, w).Place
	signals, stop, err := b.(driver.Watcher).Watch(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	refused(t, b, w)
	drivertest.MustRelease(t, a, held)
	for sig := range signals {
		if sig.Place == 0 {
			continue // just ask again
		}
		if sig.Place != place || sig.Grant != nil && sig.Grant.Token <= g.Token {
			t.Fatalf("a signal %+v for place %d", sig, place)
		}
		break
	}
	got, _ := drivertest.MustAcquire(t, b, w)
	n := 0
	for h, err := range a.(driver.Lister).List(t.Context(), "walk") {
		if n++; err != nil || h.Token != got.Token {
			t.Fatalf("listed: %+v, %v", h, err)
		}
	}
	drivertest.MustRelease(t, b, got)
	records := a.(driver.Records)
	version, err := records.Put(t.Context(), driver.Record{Key: "k", Value: []byte("v"), Retention: time.Hour})
	if err != nil || n != 1 {
		t.Fatalf("put: %v; %d listed", err, n)
	}
	if r, _, err := records.Get(t.Context(), "k"); err != nil || string(r.Value) != "v" || r.Version != version {
		t.Fatalf("get: %+v, %v", r, err)
	}
	if err := records.Delete(t.Context(), "k", version); err != nil {
		t.Fatal(err)
	}
	if _, err := a.(driver.Batcher).AcquireAll(t.Context(), []driver.Claim{mutex("one"), mutex("two")}); err != nil {
		t.Fatal(err)
	}
}

// hostile are defaults of a database under which a store has to work.
var hostile = map[string][]string{
	"as it comes":     nil,
	"repeatable read": {"default_transaction_isolation = 'repeatable read'"},
	"serializable":    {"default_transaction_isolation = 'serializable'"},
	"read only":       {"default_transaction_read_only = on"},
	"short idle":      {"idle_session_timeout = '1s'", "idle_in_transaction_session_timeout = '1s'"},
	"async":           {"synchronous_commit = off"},
	"search path":     {"search_path = evil, pg_catalog"},
}

// alter gives a database defaults, and something to go wrong by.
func alter(t testing.TB, p *servers.PostgresServer, database string, settings []string) {
	t.Helper()
	query(t, p, database, `CREATE SCHEMA evil;
		CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '1999-01-01'::timestamptz $$;
		CREATE FUNCTION evil.pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
		CREATE TABLE evil.names (name text); CREATE TABLE evil.claims (name text)`)
	for _, s := range settings {
		query(t, p, "postgres", "ALTER DATABASE "+database+" SET "+s)
	}
}

func TestTableWorksUnderAnyDefaults(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	poolers := map[string]*servers.PgBouncerServer{
		"transaction": servers.PgBouncer(t, p, "transaction", 1), // a pool of one
		"session":     servers.PgBouncer(t, p, "session", 20),
	}
	for name, settings := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, way := range []string{"direct", "transaction", "session"} {
				t.Run(way, func(t *testing.T) {
					db := database(t, p)
					alter(t, p, db, settings)
					rawURL := p.URL(db)
					if b := poolers[way]; b != nil {
						rawURL = b.URL(db)
					}
					if err := pglock.Init(t.Context(), rawURL); err != nil {
						t.Fatal(err)
					}
					rawURL = with(t, rawURL, "", "journal", "on")
					walk(t, open(t, rawURL), open(t, rawURL))
				})
			}
		})
	}
}

func TestMissingSchemaIsAClearError(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := p.URL(database(t, p))
	_, err := driver.Open(t.Context(), rawURL)
	if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "create=on") {
		t.Fatalf("got %v, want an ErrRejected that says how to make it", err)
	}
	a, b := open(t, with(t, rawURL, "", "create", "on", "schema", "locks")), open(t, with(t, rawURL, "", "create", "on", "schema", "locks"))
	walk(t, a, b)
}

func TestSchemaOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	exec(t, psql(t, rawURL), "UPDATE dibs.meta SET version = version + 1")
	_, err := driver.Open(t.Context(), rawURL)
	for what, err := range map[string]error{"open": err, "init": pglock.Init(t.Context(), rawURL)} {
		if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("%s: %v, want an ErrRejected that tells the version", what, err)
		}
	}
}

func TestGrantsAreAllThatIsNeeded(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	rawURL := newStore(t, p)
	db := strings.TrimPrefix(rawURL[strings.LastIndex(rawURL, "/")+1:], "/")
	db, _, _ = strings.Cut(db, "?")
	query(t, p, db, "CREATE ROLE app LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC")
	asApp := strings.Replace(rawURL, "postgres@", "app@", 1)
	_, err := driver.Open(t.Context(), asApp)
	if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "GRANT") {
		t.Fatalf("got %v, want an ErrRejected that tells the grants", err)
	}
	query(t, p, db, pglock.Grants("dibs", "app"))
	walk(t, open(t, with(t, asApp, "", "journal", "on")), open(t, asApp))
	s := open(t, advisory(asApp))
	c, _ := drivertest.MustAcquire(t, s, mutex("x"))
	drivertest.MustRelease(t, s, c)
}

func TestPasswordsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	for _, rawURL := range []string{
		"postgres://u:s3cret@127.0.0.1:1/db?sslmode=disable",
		"postgres://u:s3cret@127.0.0.1:1/db?sslmode=nonsense",
		"postgres://u:s3cret@127.0.0.1:1/db?port=nonsense",
		"pgadvisory://u:s3cret@127.0.0.1:1/db?sessions=9",
	} {
		if _, err := driver.Open(t.Context(), rawURL); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
}

func TestStandbyIsRefusedAndServesOncePromoted(t *testing.T) {
	t.Parallel()
	primary := servers.Postgres(t)
	rawURL := newStore(t, primary)
	c, _ := drivertest.MustAcquire(t, open(t, rawURL), mutex("x"))
	standby := servers.PostgresStandby(t, primary)
	until(t, "replication", func() bool {
		db, _, _ := strings.Cut(rawURL[strings.LastIndex(rawURL, "/")+1:], "?")
		rows, err := standby.Query(db, "SELECT count(*) FROM dibs.rows")
		return err == nil && rows[0][0] == "1"
	})
	there := with(t, rawURL, standby.Addr())
	for _, u := range []string{there, advisory(there)} {
		if _, err := driver.Open(t.Context(), u); err == nil || !strings.Contains(err.Error(), "standby") {
			t.Fatalf("%s: %v, want an error that says that it is a standby", u, err)
		}
	}
	if err := pglock.TryXact(t.Context(), begin(t, psql(t, there)), "x"); !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "standby") {
		t.Fatalf("for a transaction: %v, want an ErrRejected that says that it is a standby", err)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	s := open(t, there)
	refused(t, s, mutex("x"))
	if p := drivertest.RenewOne(t.Context(), s, c); p.Err != nil {
		t.Fatal(p.Err)
	}
	s = open(t, advisory(there))
	drivertest.MustAcquire(t, s, mutex("x"))
}

// Clients that are told of both servers go over to the one that is promoted, with
// what was replicated.
func TestClientsFollowAPromotion(t *testing.T) {
	t.Parallel()
	primary := servers.Postgres(t)
	rawURL := newStore(t, primary)
	standby := servers.PostgresStandby(t, primary)
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = ""
	both := with(t, u.String(), "", "host", "127.0.0.1,127.0.0.1", "port", fmt.Sprintf("%d,%d", primary.Port(), standby.Port()))
	table, locks := open(t, both), open(t, advisory(both))
	leased, g1 := drivertest.MustAcquire(t, table, mutex("x"))
	locked, g2 := drivertest.MustAcquire(t, locks, mutex("x"))
	told := losses(t, locks)
	there := with(t, rawURL, standby.Addr())
	c := psql(t, there)
	until(t, "replication", func() bool {
		return value[int](t, c, "SELECT (SELECT count(*) FROM dibs.rows) + (SELECT count(*) FROM dibs.fences)") == 2
	})
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	lost(t, told, locked)
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	until(t, "a renewal", func() bool {
		p := drivertest.RenewOne(t.Context(), table, leased)
		if p.Err != nil && driver.Certain(p.Err) {
			t.Fatal(p.Err)
		}
		return p.Err == nil
	})
	refused(t, open(t, there), mutex("x"))
	drivertest.MustRelease(t, table, leased)
	if _, g := drivertest.MustAcquire(t, table, mutex("x")); g.Token <= g1.Token {
		t.Errorf("token %d after %d", g.Token, g1.Token)
	}
	if again := eventually(t, locks, mutex("x")); again.Token <= g2.Token {
		t.Errorf("token %d after %d", again.Token, g2.Token)
	}
	refused(t, open(t, advisory(there)), mutex("x"))
}

func TestTableOutlivesItsServer(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t, servers.PostgresDurable())
	rawURL := newStore(t, p)
	a, b := open(t, rawURL), open(t, rawURL)
	c, g := drivertest.MustAcquire(t, a, mutex("x"))
	refused(t, b, mutex("x"))
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), mutex("x")); driver.Certain(err) {
		t.Fatalf("a server that is down: %v, want an unknown error", err)
	}
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	refused(t, b, mutex("x"))
	if p := drivertest.RenewOne(t.Context(), a, c); p.Err != nil {
		t.Fatal(p.Err)
	}
	drivertest.MustRelease(t, a, c)
	if _, again := drivertest.MustAcquire(t, b, mutex("x")); again.Token <= g.Token {
		t.Fatalf("token %d after %d", again.Token, g.Token)
	}
	query(t, p, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dibs'")
	refused(t, a, mutex("x")) // a connection that died unnoticed costs no answer
}

func TestForeignRowLockIsUnknownAndPoisonsNoOther(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	s := open(t, rawURL)
	held, _ := drivertest.MustAcquire(t, s, mutex("poison"))
	other, _ := drivertest.MustAcquire(t, s, mutex("other"))
	c := psql(t, rawURL)
	exec(t, c, "BEGIN")
	exec(t, c, "SELECT FROM dibs.names WHERE name = 'poison' FOR UPDATE")
	proofs, err := s.Renew(t.Context(), []driver.Claim{held, other})
	if err == nil || driver.Certain(err) || driver.Certain(proofs[0].Err) || proofs[1].Err != nil {
		t.Fatalf("renewed: %+v, %v", proofs, err)
	}
	refused(t, s, mutex("poison")) // reads are not in its way
	exec(t, c, "ROLLBACK")
	if p := drivertest.RenewOne(t.Context(), s, held); p.Err != nil {
		t.Fatal(p.Err)
	}
}

func TestForgottenNameGoesOn(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	s, err := pglock.OpenTable(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var last uint64
	for range 5 {
		c, _ := drivertest.MustAcquire(t, s, mutex("a"))
		last = c.Token
		drivertest.MustRelease(t, s, c)
	}
	kept, _ := drivertest.MustAcquire(t, s, mutex("kept"))
	version := value[int](t, psql(t, rawURL), "SELECT version FROM dibs.names WHERE name = 'a'")
	if err := pglock.Tidy(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if names := value[int](t, psql(t, rawURL), "SELECT count(*) FROM dibs.names"); names != 1 {
		t.Fatalf("%d names are remembered, want the one that is held", names)
	}
	for _, name := range []string{"a", "never seen"} {
		if c, _ := drivertest.MustAcquire(t, s, mutex(name)); c.Token <= last {
			t.Fatalf("%q: token %d after %d", name, c.Token, last)
		}
	}
	if v := value[int](t, psql(t, rawURL), "SELECT version FROM dibs.names WHERE name = 'a'"); v <= version {
		t.Fatalf("version %d after %d: a client that remembers it would be wrong", v, version)
	}
	if p := drivertest.RenewOne(t.Context(), s, kept); p.Err != nil {
		t.Fatal(p.Err)
	}
}

// The usual pair of calls goes by what a client remembers, which others may have
// made wrong in every way.
func TestRememberedNameIsNoAnswer(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, rawURL), open(t, rawURL)
	again := func(s driver.Store) driver.Claim {
		c, _ := drivertest.MustAcquire(t, s, mutex("x"))
		return c
	}
	drivertest.MustRelease(t, a, again(a))
	last := again(a) // by memory, and so is its release
	drivertest.MustRelease(t, a, last)
	held := again(b)
	refused(t, a, mutex("x"))
	drivertest.MustRelease(t, b, held)
	mine := again(a)
	if mine.Token <= last.Token {
		t.Fatalf("token %d after %d", mine.Token, last.Token)
	}
	w := mutex("x")
	w.Patience = 20 * time.Second
	refused(t, b, w)
	drivertest.MustRelease(t, a, mine) // there is a line that it does not remember
	refused(t, a, mutex("x"))
	got, _ := drivertest.MustAcquire(t, b, w)
	drivertest.MustRelease(t, b, got)
	mine = again(a)
	r := driver.Revocation{Name: "x", Token: mine.Token, Now: true}
	if err := b.(driver.Revoker).Revoke(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(t.Context(), mine); !errors.Is(err, driver.ErrNotHeld) {
		t.Fatalf("released what was taken away: %v", err)
	}
	for range 2 {
		mine = again(a)
		query(t, p, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dibs' AND datname = '"+
			value[string](t, psql(t, rawURL), "SELECT current_database()")+"'")
		drivertest.MustRelease(t, a, mine) // the connection died unnoticed
	}
	short := drivertest.Mutex("x", 100*time.Millisecond)
	short, _ = drivertest.MustAcquire(t, a, short)
	time.Sleep(300 * time.Millisecond)
	if err := a.Release(t.Context(), short); !errors.Is(err, driver.ErrNotHeld) {
		t.Fatalf("released what had ended: %v", err)
	}
}

// A hand-over is worked out a little before it is done, and a waiter that was
// refused in between trusts what it is handed from the send of that ask on: it must
// not be told more than what is left from there.
func TestSlowHandOverIsTrustedNoLongerThanItLasts(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	a := open(t, with(t, rawURL, "", "journal", "on")) // the long way: read, work out, write
	b := open(t, rawURL)
	held, _ := drivertest.MustAcquire(t, a, mutex("x"))
	w := mutex("x")
	w.Patience = 20 * time.Second
	refused(t, b, w)
	signals, stop, err := b.(driver.Watcher).Watch(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c := psql(t, rawURL)
	exec(t, c, "BEGIN")
	exec(t, c, "SELECT FROM dibs.claims WHERE state = 6 FOR UPDATE") // the write has to wait for it
	released := make(chan error, 1)
	go func() { released <- a.Release(t.Context(), held) }() // ends once the row is free
	until(t, "a write that waits", func() bool {
		return value[int](t, psql(t, rawURL), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") > 0
	})
	time.Sleep(300 * time.Millisecond) // within the second that it waits at most
	asked := time.Now().UnixMicro()
	refused(t, b, w)
	exec(t, c, "ROLLBACK")
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	for sig := range signals {
		if sig.Grant == nil {
			continue
		}
		// One machine, one clock.
		end := value[int64](t, c, "SELECT until FROM dibs.rows WHERE state = 2")
		if trusted := asked + sig.Grant.TTL.Microseconds(); trusted > end {
			t.Fatalf("the hand-over is trusted for %v longer than it lasts", time.Duration(trusted-end)*time.Microsecond)
		}
		return
	}
}
