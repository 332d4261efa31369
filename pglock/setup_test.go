package pglock_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// A role with the rights that are printed for pgadvisory:// can use that, and
// nothing of the table.
func TestAdvisoryRightsAreAllThatIsNeeded(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	setup, err := driver.PlanSetup(advisory(rawURL))
	if err != nil {
		t.Fatal(err)
	}
	db, _, _ := strings.Cut(rawURL[strings.LastIndex(rawURL, "/")+1:], "?")
	query(t, p, db, `DROP ROLE IF EXISTS "App"; CREATE ROLE "App" LOGIN`)
	query(t, p, db, setup.Rights("App"))
	asApp := strings.Replace(rawURL, "postgres@", "App@", 1)
	s := open(t, advisory(asApp))
	c, _ := drivertest.MustAcquire(t, s, mutex("x"))
	refused(t, open(t, advisory(asApp)), mutex("x"))
	drivertest.MustRelease(t, s, c)
	found, err := s.(driver.Diagnoser).Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Check == "rights" && f.Level != driver.Fine {
			t.Errorf("rights: %v, %s", f.Level, f.Text)
		}
	}
	if _, err := driver.Open(t.Context(), asApp); !strings.Contains(err.Error(), "GRANT") {
		t.Errorf("the table: %v, want an error that tells the grants", err)
	}
}

// After a restore the pages' SQL raises all numbers above what was given out since
// the backup.
func TestNumbersAreRaisedAfterARestore(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	s, a := open(t, rawURL), open(t, advisory(rawURL))
	var before [2]driver.Grant
	for i, s := range []driver.Store{s, a} {
		_, before[i] = drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Second))
	}
	version, err := s.(driver.Records).Put(t.Context(), driver.Record{Key: "k", Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []driver.Store{s, a} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, _ := strings.Cut(string(text), "```sql\n")
	sql, _, _ = strings.Cut(sql, "```")
	db, _, _ := strings.Cut(rawURL[strings.LastIndex(rawURL, "/")+1:], "?")
	query(t, p, db, sql)
	const lost = 1_000_000_000 // numbers at most since the backup
	s, a = open(t, rawURL), open(t, advisory(rawURL))
	for i, s := range []driver.Store{s, a} {
		if _, g := drivertest.MustAcquire(t, s, mutex("x")); g.Token < before[i].Token+lost || g.Fence < before[i].Fence+lost {
			t.Errorf("after token %d the next is %d, with fence %d", before[i].Token, g.Token, g.Fence)
		}
	}
	if next, err := s.(driver.Records).Put(t.Context(), driver.Record{Key: "other", Retention: time.Hour}); err != nil || next < version+lost {
		t.Errorf("after version %d of a record comes %d, %v", version, next, err)
	}
}

// The pages have the grants that are printed.
func TestDocsHaveTheGrants(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"../docs/stores/postgres.md", "../docs/production.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll("\n"+pglock.Grants("dibs", "app"), "\n", "\n    "); !strings.Contains(string(text), want) {
			t.Errorf("%s does not have:%s", page, want)
		}
	}
}

// Who makes a schema waits for another that is at it in the same database, and
// longer than a call waits for a row.
func TestASchemaWaitsForAnotherThatIsMade(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := p.URL(database(t, p))
	other := psql(t, rawURL)
	exec(t, other, "BEGIN")
	exec(t, other, "SELECT pg_advisory_xact_lock(hashtext('dibs init'))")
	made := make(chan error, 1)
	go func() { made <- pglock.Init(t.Context(), rawURL) }()
	watcher := psql(t, rawURL)
	until(t, "it has waited for a second and a half, or given up", func() bool {
		return len(made) > 0 || value[bool](t, watcher, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND clock_timestamp() > query_start + interval '1.5s')`)
	})
	exec(t, other, "COMMIT")
	if err := <-made; err != nil {
		t.Error(err)
	}
}
