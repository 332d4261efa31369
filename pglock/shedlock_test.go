package pglock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// newShedlock makes an empty table of ShedLock and returns its URL.
func newShedlock(t testing.TB, p *servers.PostgresServer) string {
	t.Helper()
	rawURL := with(t, p.URL(database(t, p)), "", "layout", "shedlock")
	if err := pglock.Init(t.Context(), rawURL); err != nil {
		t.Fatal(err)
	}
	return rawURL
}

// TestConformanceOfTheShedlockLayout runs the laws on the table that ShedLock's
// clients share.
func TestConformanceOfTheShedlockLayout(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	p := servers.SharedPostgres(t)
	drivertest.Run(t, drivertest.Harness{Name: "postgres, shedlock", New: func(t testing.TB) drivertest.Storage {
		rawURL := newShedlock(t, p)
		return drivertest.Storage{
			Open: func(t testing.TB) driver.Store { return open(t, rawURL) },
			Cut: func(t testing.TB) (driver.Store, drivertest.Link) {
				link := newWire(t, p.Addr())
				return drivertest.Wrap(open(t, with(t, rawURL, link.p.Addr())), link.Around), link
			},
			Slack: slack,
		}
	}})
}

// A java is a program that locks as ShedLock's JdbcTemplateLockProvider does with
// usingDbTime on PostgreSQL.
type java struct {
	t    testing.TB
	c    *pgx.Conn
	host string
}

func newJava(t testing.TB, rawURL, host string) *java {
	t.Helper()
	return &java{t, psqlOf(t, rawURL), host}
}

// psqlOf connects to the database that a store's URL names.
func psqlOf(t testing.TB, rawURL string) *pgx.Conn {
	t.Helper()
	plain, _, _ := strings.Cut(rawURL, "?")
	return psql(t, plain)
}

const shedNow = "timezone('utc', CURRENT_TIMESTAMP)"

func (j *java) did(sql string, args ...any) bool {
	j.t.Helper()
	tag, err := j.c.Exec(j.t.Context(), strings.ReplaceAll(sql, "NOW", shedNow), args...)
	if err != nil {
		j.t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected() > 0
}

func (j *java) lock(name string, atMost time.Duration) bool {
	j.t.Helper()
	return j.did(`INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES ($1, NOW + cast($2 AS interval), NOW, $3)
		ON CONFLICT (name) DO UPDATE SET lock_until = NOW + cast($2 AS interval), locked_at = NOW, locked_by = $3
		WHERE shedlock.name = $1 AND shedlock.lock_until <= NOW`, name, atMost, j.host)
}

func (j *java) relock(name string, atMost time.Duration) bool { // a row that it knows to be there
	j.t.Helper()
	return j.did(`UPDATE shedlock SET lock_until = NOW + cast($2 AS interval), locked_at = NOW, locked_by = $3
		WHERE shedlock.name = $1 AND shedlock.lock_until <= NOW`, name, atMost, j.host)
}

func (j *java) extend(name string, atMost time.Duration) bool {
	j.t.Helper()
	return j.did(`UPDATE shedlock SET lock_until = NOW + cast($2 AS interval) WHERE name = $1 AND locked_by = $3 AND lock_until > NOW`, name, atMost, j.host)
}

func (j *java) unlock(name string, atLeast time.Duration) bool {
	j.t.Helper()
	return j.did(`UPDATE shedlock SET lock_until = CASE WHEN locked_at + cast($2 AS interval) > NOW THEN locked_at + cast($2 AS interval) ELSE NOW END
		WHERE name = $1 AND locked_by = $3`, name, atLeast, j.host)
}

// ShedLock's programs and we exclude each other, by release, by expiry, by
// extension and by at-least-for.
func TestShedlockExcludesUsAndWeIt(t *testing.T) {
	t.Parallel()
	rawURL := newShedlock(t, servers.SharedPostgres(t))
	s := open(t, rawURL)
	j := newJava(t, rawURL, "host-7")

	// We hold it.
	c, g := drivertest.MustAcquire(t, s, mutex("job"))
	if j.lock("job", time.Minute) || j.relock("job", time.Minute) || j.extend("job", time.Minute) || j.unlock("job", 0) {
		t.Fatal("it got, or touched, what we hold")
	}
	drivertest.MustRelease(t, s, c)
	if !j.relock("job", time.Minute) {
		t.Fatal("it did not get what we released")
	}

	// It holds it.
	e := refused(t, s, mutex("job"))
	if e.Holder == nil || e.Holder.Note != "host-7" || e.RetryAfter <= 0 || e.RetryAfter > time.Minute {
		t.Fatalf("refused with %+v, %+v", e, e.Holder)
	}
	var re *driver.RejectedError
	if err := s.(driver.Revoker).Revoke(t.Context(), driver.Revocation{Name: "job", Token: e.Holder.Token, Now: true}); !errors.As(err, &re) {
		t.Fatalf("another program's lock, revoked: %v", err)
	}
	if !j.extend("job", 2*time.Minute) {
		t.Fatal("it could not extend its lock")
	}
	if e := refused(t, s, mutex("job")); e.RetryAfter <= time.Minute {
		t.Fatalf("extended, and refused with %+v", e)
	}
	if !j.unlock("job", 0) {
		t.Fatal("it could not unlock")
	}
	c, g2 := drivertest.MustAcquire(t, s, mutex("job"))
	if g2.Fence <= g.Fence || g2.TookOver {
		t.Fatalf("%+v after %+v", g2, g)
	}
	if j.unlock("job", 0) {
		t.Fatal("it unlocked what we hold by now")
	}
	drivertest.MustRelease(t, s, c)

	// Either dies.
	drivertest.MustAcquire(t, s, drivertest.Mutex("mine", 200*time.Millisecond))
	until(t, "its lock after our death", func() bool { return j.lock("mine", 200*time.Millisecond) })
	eventually(t, s, mutex("mine"))

	// At least for a while.
	if !j.lock("least", time.Minute) || !j.unlock("least", time.Hour) {
		t.Fatal("could not lock and unlock")
	}
	refused(t, s, mutex("least"))
	k := mutex("kept")
	k.Keep = time.Hour
	k, _ = drivertest.MustAcquire(t, s, k)
	drivertest.MustRelease(t, s, k)
	if j.lock("kept", time.Minute) {
		t.Fatal("it got what is to be kept")
	}
}

// All at once, on one name that a few of both kinds want.
func TestShedlockInACrowd(t *testing.T) {
	t.Parallel()
	rawURL := newShedlock(t, servers.SharedPostgres(t))
	client, err := dibs.Open(t.Context(), rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	inside := make(chan struct{}, 1)
	work := func() {
		select {
		case inside <- struct{}{}:
			time.Sleep(time.Millisecond)
			<-inside
		default:
			t.Error("two are inside")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		j := newJava(t, rawURL, "host-7")
		for ctx.Err() == nil {
			if j.lock("x", time.Minute) {
				work()
				j.unlock("x", 0)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for range 20 {
		err := client.Mutex("x").Do(t.Context(), func(context.Context) error { work(); return nil })
		if err != nil {
			t.Error(err)
		}
	}
	cancel()
	<-done
}

// A row that another program has written since it was read is not overwritten: we
// read it again, and are refused. A trigger stops us between the two.
func TestShedlockRowThatChanged(t *testing.T) {
	t.Parallel()
	rawURL := newShedlock(t, servers.SharedPostgres(t))
	s, gate, j := open(t, rawURL), psqlOf(t, rawURL), newJava(t, rawURL, "host-7")
	m, _ := drivertest.MustAcquire(t, s, mutex("x"))
	drivertest.MustRelease(t, s, m)
	exec(t, gate, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END';
		CREATE TRIGGER gate BEFORE UPDATE ON shedlock EXECUTE FUNCTION wait();
		SELECT pg_advisory_lock(1)`)
	exec(t, j.c, "SET session_replication_role = replica") // no trigger for this one
	answer := make(chan error, 1)
	go func() { // ends with the call
		_, err := s.Acquire(context.WithoutCancel(t.Context()), mutex("x"))
		answer <- err
	}()
	until(t, "we are about to write", func() bool {
		return value[int](t, gate, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 1
	})
	if !j.relock("x", time.Minute) {
		t.Fatal("the row is free, and the other program does not get it")
	}
	exec(t, gate, "SELECT pg_advisory_unlock(1)")
	if err := <-answer; !errors.Is(err, driver.ErrHeld) {
		t.Errorf("the other program holds it, and we are told %v", err)
	}
	if by := value[string](t, gate, "SELECT locked_by FROM shedlock WHERE name = 'x'"); by != "host-7" {
		t.Errorf("locked by %q", by)
	}
}

// What ShedLock's documentation and its users' tables differ in.
func TestShedlockTables(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	plain := p.URL(database(t, p))
	c := psqlOf(t, plain)
	exec(t, c, `CREATE SCHEMA app;
		CREATE TABLE app.locks (job varchar(10) PRIMARY KEY, till timestamp(3), since timestamp(3), who varchar(255));
		CREATE TABLE zoned (name varchar(64) PRIMARY KEY, lock_until timestamptz NOT NULL, locked_at timestamptz NOT NULL, locked_by varchar(255) NOT NULL);
		CREATE TABLE keyless (name varchar(64), lock_until timestamp, locked_at timestamp, locked_by varchar(255))`)
	shed := func(params ...string) string {
		return with(t, plain, "", append([]string{"layout", "shedlock"}, params...)...)
	}

	s := open(t, shed("schema", "app", "table", "locks", "columns", "job,till,since,who"))
	last := uint64(0)
	for range 20 { // faster than the columns can tell
		m, g := drivertest.MustAcquire(t, s, mutex("short"))
		if g.Token <= last || g.Token%1000 != 0 {
			t.Fatalf("token %d after %d", g.Token, last)
		}
		last = g.Token
		drivertest.MustRelease(t, s, m)
	}
	var re *driver.RejectedError
	if _, err := s.Acquire(t.Context(), mutex("over ten ch")); !errors.As(err, &re) {
		t.Errorf("a name that is too long: %v", err)
	}
	exec(t, c, `INSERT INTO app.locks VALUES ('forever', 'infinity', NULL, NULL)`)
	refused(t, s, mutex("forever"))

	z := open(t, shed("table", "zoned", "zone", "Europe/Prague"))
	exec(t, c, `SET TimeZone = 'Europe/Prague'`)
	exec(t, c, `INSERT INTO zoned VALUES ('x', `+shedNow+` + interval '5 minutes', `+shedNow+`, 'host-7')`)
	if e := refused(t, z, mutex("x")); e.RetryAfter > 5*time.Minute || e.RetryAfter < time.Minute {
		t.Errorf("closed for five minutes, and told %v", e.RetryAfter)
	}
	drivertest.MustAcquire(t, z, mutex("y"))
	if !value[bool](t, c, `SELECT lock_until > `+shedNow+` AND lock_until <= `+shedNow+` + interval '30 seconds' FROM zoned WHERE name = 'y'`) {
		t.Error("what we locked is not locked for them")
	}

	for params, why := range map[string]string{
		"table=zoned":              "zone=UTC",
		"table=keyless":            "primary key",
		"table=missing":            "dibs store init",
		"schema=app&table=locks":   "columns=",
		"table=shedlock%22":        "lower-case",
		"columns=a,b":              "four",
		"zone='":                   "time zone",
		"journal=on":               "journal",
		"layout=lease&table=locks": "layout=shedlock",
		"table=zoned&zone=Nowhere%2FAtAll&x=more": "unknown",
	} {
		rawURL := shed() + "&" + params
		if strings.HasPrefix(params, "layout=") {
			rawURL = plain + "&" + params
		}
		_, err := driver.Open(t.Context(), rawURL)
		if !errors.As(err, &re) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want a rejection that says %s", params, err, why)
		}
	}
}

// Who changes lock_until by hand has the last word: a lock that is opened is lost
// and is no death, and one that is closed stays closed.
func TestShedlockByHand(t *testing.T) {
	t.Parallel()
	rawURL := newShedlock(t, servers.SharedPostgres(t))
	s := open(t, rawURL)
	c := psqlOf(t, rawURL)
	for _, sql := range []string{`UPDATE shedlock SET lock_until = ` + shedNow, `DELETE FROM shedlock`} {
		m, _ := drivertest.MustAcquire(t, s, mutex("x"))
		exec(t, c, sql)
		if p := drivertest.RenewOne(t.Context(), s, m); !errors.Is(p.Err, driver.ErrNotHeld) {
			t.Errorf("%s, and proved as %+v", sql, p)
		}
		n, g := drivertest.MustAcquire(t, s, mutex("x"))
		if g.TookOver || g.Token <= m.Token {
			t.Errorf("%s, and after token %d granted %+v", sql, m.Token, g)
		}
		drivertest.MustRelease(t, s, n)
	}
	exec(t, c, `UPDATE shedlock SET lock_until = `+shedNow+` + interval '1 hour'`)
	if e := refused(t, s, mutex("x")); e.RetryAfter < 50*time.Minute {
		t.Errorf("closed for an hour, and told %v", e.RetryAfter)
	}
}

// A row that another transaction has in hand is in nobody's way but its own.
func TestShedlockRowInHand(t *testing.T) {
	t.Parallel()
	rawURL := newShedlock(t, servers.SharedPostgres(t))
	s := open(t, rawURL)
	a, _ := drivertest.MustAcquire(t, s, mutex("a"))
	b, _ := drivertest.MustAcquire(t, s, mutex("b"))
	c := psqlOf(t, rawURL)
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM shedlock WHERE name = 'a' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ps, err := s.Renew(t.Context(), []driver.Claim{a, b})
	if driver.Certain(ps[0].Err) || err == nil || ps[1].Err != nil {
		t.Errorf("one of two in hand: %+v, %v", ps, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	drivertest.MustRelease(t, s, a)
	drivertest.MustRelease(t, s, b)
}

// A role with the rights that are printed can use the table, and what makes it says
// whether it was there.
func TestShedlockSetup(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := with(t, p.URL(database(t, p)), "", "layout", "shedlock")
	var re *driver.RejectedError
	if _, err := driver.Open(t.Context(), rawURL); !errors.As(err, &re) || !strings.Contains(err.Error(), "dibs store init") {
		t.Errorf("without a table: %v", err)
	}
	setup, err := driver.PlanSetup(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if made, err := setup.Make(t.Context()); err != nil || made != want {
			t.Fatalf("made %v, %v, want %v", made, err, want)
		}
	}
	c := psqlOf(t, rawURL)
	exec(t, c, setup.Script) // by hand it may be there too
	exec(t, c, `DROP ROLE IF EXISTS "Java"; CREATE ROLE "Java" LOGIN`)
	asJava := strings.Replace(rawURL, "postgres@", "Java@", 1)
	if _, err := open(t, asJava).Acquire(t.Context(), mutex("x")); !errors.As(err, &re) || !strings.Contains(err.Error(), "GRANT SELECT, INSERT, UPDATE") {
		t.Errorf("without rights: %v", err)
	}
	exec(t, c, setup.Rights("Java"))
	s := open(t, asJava)
	m, _ := drivertest.MustAcquire(t, s, mutex("x"))
	drivertest.MustRelease(t, s, m)
	found, err := s.(driver.Diagnoser).Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Check == "rights" && f.Level != driver.Fine {
			t.Errorf("rights: %v, %s", f.Level, f.Text)
		}
	}
}
