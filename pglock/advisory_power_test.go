package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// list lists, again if the machine is so busy that a holder does not answer.
func list(t testing.TB, s driver.Store, prefix string) (hs []driver.Holder) {
	t.Helper()
	until(t, "an answer of all holders", func() bool {
		hs = nil
		for h, err := range s.(driver.Lister).List(t.Context(), prefix) {
			switch {
			case err == nil:
			case driver.Certain(err):
				t.Fatal(err)
			default:
				return false
			}
			hs = append(hs, h)
		}
		return true
	})
	return hs
}

func revoke(t testing.TB, s driver.Store, c driver.Claim, now bool) error {
	t.Helper()
	return s.(driver.Revoker).Revoke(t.Context(), driver.Revocation{Name: c.Name, Token: c.Token, Now: now, Reason: "test"})
}

// Holders answer for what they hold, on whatever session; who makes other keys of
// names is not asked for them.
func TestAdvisoryListsWhatHoldersAnswer(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a := open(t, advisory(with(t, rawURL, "", "sessions", "4")))
	b := open(t, advisory(rawURL))
	other := open(t, advisory(with(t, rawURL, "", "namespace", "other")))
	m := mutex("list/a")
	m.Note = "a \"note\"\u2028 with <signs>"
	m, g := drivertest.MustAcquire(t, a, m)
	drivertest.MustAcquire(t, b, drivertest.Reader("list/b", 20*time.Second))
	drivertest.MustAcquire(t, a, drivertest.Reader("list/b", 20*time.Second))
	drivertest.MustAcquire(t, other, mutex("list/a"))
	drivertest.MustAcquire(t, b, mutex("elsewhere"))
	hs := list(t, b, "list/")
	if len(hs) != 3 || hs[0].Name != "list/a" || hs[0].Note != m.Note || hs[0].Token != g.Token || hs[0].Fence != g.Fence ||
		hs[0].State != driver.Held || hs[0].Left <= 0 || hs[0].Left > 30*time.Second || hs[0].TTL != 30*time.Second ||
		hs[1].Name != "list/b" || hs[1].Mode() != driver.Shared || hs[2].Mode() != driver.Shared || hs[1].Token >= hs[2].Token {
		t.Errorf("listed %+v", hs)
	}
	drivertest.MustRelease(t, a, m)
	if hs := list(t, other, "list/a"); len(hs) != 1 {
		t.Errorf("in the other namespace: %+v", hs)
	}
	if hs := list(t, b, "list/a"); len(hs) != 0 {
		t.Errorf("released, and listed as %+v", hs)
	}
}

// What is listed is told in parts, however much it is.
func TestAdvisoryListsMany(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
	const n = 300
	for i := range n {
		m := mutex(fmt.Sprintf("%03d%s", i, strings.Repeat("n", 500)))
		m.Note = strings.Repeat("\x01", driver.MaxNote) // what takes most room as JSON
		drivertest.MustAcquire(t, a, m)
	}
	hs := list(t, b, "")
	if len(hs) != n {
		t.Fatalf("%d are listed of %d", len(hs), n)
	}
	for i, h := range hs {
		if !strings.HasPrefix(h.Name, fmt.Sprintf("%03dn", i)) || len(h.Name) != 503 || h.Note == "" {
			t.Fatalf("number %d is %+v", i, h)
		}
	}
}

// Another program's lock is listed if its name is known, and never taken away.
func TestAdvisoryStrangers(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	s, raw := open(t, advisory(with(t, rawURL, "", "hash", "hashtext"))), open(t, advisory(with(t, rawURL, "", "key", "raw")))
	c := psql(t, rawURL)
	exec(t, c, "SET application_name = 'some-app'")
	exec(t, c, "SELECT pg_advisory_lock(hashtext('invoice')), pg_advisory_lock_shared(-7), pg_advisory_lock(-4, 2)")
	hs := list(t, s, "invoice")
	if len(hs) != 1 || hs[0].Name != "invoice" || !strings.Contains(hs[0].Note, "some-app") || !hs[0].Foreign {
		t.Errorf("a stranger's lock: %+v", hs)
	}
	if hs := list(t, raw, "-7"); len(hs) != 1 || hs[0].Name != "-7" || hs[0].Mode() != driver.Shared {
		t.Errorf("a stranger's raw lock: %+v", hs)
	}
	if hs := list(t, raw, "-4"); len(hs) != 1 || hs[0].Name != "-4,2" {
		t.Errorf("a stranger's raw lock: %+v", hs)
	}
	err := revoke(t, s, driver.Claim{Name: "invoice"}, true)
	if driver.Certain(err) || !strings.Contains(err.Error(), "some-app") || !strings.Contains(err.Error(), "pg_terminate_backend") || !strings.Contains(err.Error(), "2 other") {
		t.Errorf("a stranger's lock, revoked: %v", err)
	}
	refused(t, s, mutex("invoice"))
	if err := revoke(t, s, driver.Claim{Name: "nobody", Token: 1}, true); !errors.Is(err, driver.ErrNotHeld) {
		t.Errorf("nobody holds it: %v", err)
	}
}

// Now frees the one lock, and nothing else on its session; its holder is told.
func TestAdvisoryRevokeNow(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
	told := losses(t, a)
	kept, _ := drivertest.MustAcquire(t, a, mutex("kept"))
	for _, first := range []bool{false, true} { // revoked before that
		m, _ := drivertest.MustAcquire(t, a, mutex("x"))
		if first {
			if err := revoke(t, b, m, false); err != nil {
				t.Fatal(err)
			}
			refused(t, b, mutex("x"))
		}
		if err := revoke(t, b, m, true); err != nil {
			t.Fatal(err)
		}
		lost(t, told, m)
		n, _ := drivertest.MustAcquire(t, b, mutex("x"))
		if p := drivertest.RenewOne(t.Context(), a, m); !errors.Is(p.Err, driver.ErrNotHeld) {
			t.Errorf("freed, and proved as %+v", p)
		}
		if err := revoke(t, b, m, true); !errors.Is(err, driver.ErrNotHeld) {
			t.Errorf("a successor was hit: %v", err)
		}
		drivertest.MustRelease(t, b, n)
	}
	if p := drivertest.RenewOne(t.Context(), a, kept); p.Err != nil {
		t.Errorf("another lock of the same session: %v", p.Err)
	}
}

// What is revoked is free when its TTL is over, though nobody lets go.
func TestAdvisoryRevokedEndsByItsTTL(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
	m, _ := drivertest.MustAcquire(t, a, drivertest.Mutex("x", time.Second))
	if err := revoke(t, b, m, false); err != nil {
		t.Fatal(err)
	}
	if p := drivertest.RenewOne(t.Context(), a, m); !errors.Is(p.Err, driver.ErrNotHeld) {
		t.Fatalf("revoked, and proved as %+v", p)
	}
	eventually(t, b, mutex("x"))
	if err := a.Release(t.Context(), m); !errors.Is(err, driver.ErrNotHeld) {
		t.Errorf("released after its end: %v", err)
	}
}

// A holder that does not answer keeps its lock, and the error says so.
func TestAdvisoryHolderThatIsCutOff(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	link := proxy.New(t, p.Addr())
	a, b := open(t, advisory(with(t, rawURL, link.Addr()))), open(t, advisory(rawURL))
	b.(*pglock.Advisory).SetPatience(time.Second)
	m, _ := drivertest.MustAcquire(t, a, mutex("x"))
	link.Set(proxy.BlackHole)
	var failed error
	for _, failed = range b.(driver.Lister).List(t.Context(), "other") {
	}
	if failed == nil || driver.Certain(failed) || !strings.Contains(failed.Error(), "does not answer") {
		t.Errorf("listed, and one can't answer: %v", failed)
	}
	if err := revoke(t, b, m, true); err == nil || driver.Certain(err) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a holder that can't hear: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.(driver.Revoker).Revoke(ctx, driver.Revocation{Name: "x", Token: m.Token}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that leaves: %v", err)
	}
	refused(t, b, mutex("x"))
}

// Who may ask is who could end the session, or see what it does, anyway.
func TestAdvisoryAskersNeedRights(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	c := psql(t, rawURL)
	for _, role := range []string{"owner", "guest", "watcher", "signaller"} {
		exec(t, c, "DROP ROLE IF EXISTS ask_"+role)
		exec(t, c, "CREATE ROLE ask_"+role+" LOGIN")
	}
	exec(t, c, "GRANT pg_read_all_stats TO ask_watcher; GRANT pg_signal_backend TO ask_signaller")
	as := func(role string) driver.Store {
		return open(t, advisory(with(t, strings.Replace(rawURL, "postgres@", "ask_"+role+"@", 1), "", "fence", "off")))
	}
	super := open(t, advisory(with(t, rawURL, "", "fence", "off")))
	s, m := as("owner"), mutex("x")
	m, _ = drivertest.MustAcquire(t, s, m)
	for role, may := range map[string]struct{ list, revoke bool }{
		"guest": {}, "watcher": {list: true}, "signaller": {list: true, revoke: true}, "owner": {list: true, revoke: true},
	} {
		s := as(role)
		var failed error
		for _, err := range s.(driver.Lister).List(t.Context(), "x") {
			failed = err
		}
		if (failed == nil) != may.list || failed != nil && !errors.Is(failed, fs.ErrPermission) {
			t.Errorf("%s lists: %v", role, failed)
		}
		err := revoke(t, s, m, false)
		if (err == nil) != may.revoke || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s revokes: %v", role, err)
		}
	}
	n, _ := drivertest.MustAcquire(t, super, mutex("y"))
	if err := revoke(t, as("signaller"), n, true); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a superuser's lock: %v", err)
	}
}

// Anybody may write to a channel.
func TestAdvisoryHearsRubbish(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
	m, _ := drivertest.MustAcquire(t, a, mutex("x"))
	c := psql(t, rawURL)
	for _, text := range []string{"", "{", "{}", "k1", "null", `{"to":1}`, `{"to":"nobody"}`, `{"to":"nobody","revoke":{}}`, `{"to":"nobody","revoke":{"token":"x"}}`} {
		exec(t, c, `SELECT pg_notify('dibs.ask', $1 || repeat(' ', i)) FROM generate_series(1, 50) i`, text)
	}
	until(t, "an answer in spite of that", func() bool { return len(list(t, b, "x")) == 1 })
	if p := drivertest.RenewOne(t.Context(), a, m); p.Err != nil {
		t.Error(p.Err)
	}
}

// A holder that is gone before it has answered is not waited for, and is no error.
func TestAdvisoryHoldersThatGo(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	link := proxy.New(t, p.Addr())
	b := open(t, advisory(rawURL))
	b.(*pglock.Advisory).SetPatience(time.Hour)
	a := open(t, advisory(with(t, rawURL, link.Addr())))
	drivertest.MustAcquire(t, a, mutex("x"))
	link.Set(proxy.BlackHole) // it does not answer
	listed := make(chan error, 1)
	go func() { // ends when it is listed
		var failed error
		for _, failed = range b.(driver.Lister).List(t.Context(), "y") {
		}
		listed <- failed
	}()
	c := psql(t, rawURL)
	until(t, "the question", func() bool {
		return value[int](t, c, "SELECT count(*) FROM pg_stat_activity WHERE query ~ 'pg_notify|objsubid' AND datname = current_database() AND pid <> pg_backend_pid()") > 0
	})
	exec(t, c, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
	if err := <-listed; err != nil {
		t.Errorf("a holder that is gone: %v", err)
	}
}
