package examples_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs/examples/internal/app"
	"github.com/dibslock/dibs/internal/servers"
)

func TestReminders(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	outbox := h.path("outbox")
	cron := func(day string) string { return h.run(t, "reminders", "-day", day, "-outbox", outbox) }
	said := together(3, func(int) string { return cron("2026-11-29") })
	said = append(said, cron("2026-11-29")) // its clock is late
	if sent := count(said, "sent"); sent != 1 {
		t.Errorf("%d of four instances sent: %q", sent, said)
	}
	if lines := h.lines(t, "outbox"); len(lines) != 3 {
		t.Errorf("%d reminders to three customers: %q", len(lines), lines)
	}
	if next := cron("2026-11-30"); next != "sent\n" {
		t.Errorf("the next day: %q", next)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	postgres := func(t *testing.T) string {
		p := servers.SharedPostgres(t)
		name := "app_" + filepath.Base(t.Name())
		_, err := p.Query("postgres", "CREATE DATABASE "+name)
		must(t, err)
		t.Cleanup(func() {
			if _, err := p.Query("postgres", "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
		return p.URL(name)
	}
	for name, args := range map[string]func(t *testing.T) []string{
		"sqlite":   func(t *testing.T) []string { return []string{"-db", filepath.Join(t.TempDir(), "app.db")} },
		"postgres": func(t *testing.T) []string { return []string{"-db", postgres(t)} },
		"advisory": func(t *testing.T) []string { // the database's own locks
			db := postgres(t)
			return []string{"-db", db, "-store", "pgadvisory" + strings.TrimPrefix(db, "postgres") + "&create=on"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, args := newHost(t), args(t)
			said := together(3, func(int) string { return h.run(t, "migrate", args...) })
			slices.Sort(said)
			const at = ", the schema is at version 4: serving\n"
			if want := []string{"applied 0" + at, "applied 0" + at, "applied 4" + at}; !slices.Equal(said, want) {
				t.Errorf("%q, want %q", said, want)
			}
		})
	}
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	together(3, func(int) string { return h.run(t, "transaction", "-db", h.path("app.db"), "-times", "10") })
	db, err := app.OpenDB(h.path("app.db"))
	must(t, err)
	defer db.Close()
	var n int
	must(t, db.QueryRow("SELECT n FROM counters WHERE name = 'visits'").Scan(&n))
	if n != 30 {
		t.Errorf("three instances counted to 10 each, and the counter is at %d", n)
	}
}

// A provider charges once a key, and doesn't answer the first request, which it has
// charged for.
type provider struct {
	mu      sync.Mutex // guards what follows
	charged map[string]string
	asked   int

	first chan struct{} // closed when the first request was charged for
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	key := r.Header.Get("Idempotency-Key")
	p.mu.Lock()
	p.asked++
	if p.charged[key] == "" {
		p.charged[key] = fmt.Sprintf("receipt-%d", len(p.charged)+1)
	}
	receipt, silent := p.charged[key], p.asked == 1
	p.mu.Unlock()
	if silent {
		close(p.first)
		<-r.Context().Done()
		return
	}
	fmt.Fprint(w, receipt)
}

func TestPayment(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	file := h.path("shop.db")
	db, err := app.OpenDB(file)
	must(t, err)
	defer db.Close()
	must(t, db.Fence.Create(t.Context(), db))
	_, err = db.Exec("CREATE TABLE orders (id VARCHAR(20) PRIMARY KEY, cents BIGINT NOT NULL, receipt VARCHAR(40) NOT NULL DEFAULT '')")
	must(t, err)
	_, err = db.Exec("INSERT INTO orders (id, cents) VALUES ('1001', 4200)")
	must(t, err)
	p := &provider{charged: map[string]string{}, first: make(chan struct{})}
	s := httptest.NewServer(p)
	defer s.Close()
	args := []string{"-db", file, "-provider", s.URL, "-order", "1001"}

	// One is killed when the money has moved and nothing is written down yet.
	doomed := h.start(t, "payment", args...)
	<-p.first
	must(t, doomed.cmd.Process.Kill())
	doomed.cmd.Wait()

	said := together(3, func(int) string { return h.run(t, "payment", args...) })
	if count(said, "paid: receipt-1") != 1 || count(said, "paid before: receipt-1") != 2 {
		t.Errorf("%q", said)
	}
	if len(p.charged) != 1 || p.asked != 2 {
		t.Errorf("charged %v, asked %d times", p.charged, p.asked)
	}
	var receipt string
	must(t, db.QueryRow("SELECT receipt FROM orders WHERE id = '1001'").Scan(&receipt))
	if receipt != "receipt-1" {
		t.Errorf("the order has the receipt %q", receipt)
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	stampede := func() {
		t.Helper()
		said := together(3, func(int) string {
			return h.run(t, "cache", "-file", h.path("report"), "-source", h.path("queries"), "-calls", "10", "-fresh", "1h")
		})
		if got := count(said, "report of"); got != 3 {
			t.Errorf("%d of three instances have a report: %q", got, said)
		}
	}
	for computed := range 2 {
		stampede() // nothing there, or too old
		stampede() // fresh
		if lines := h.lines(t, "queries"); len(lines) != computed+1 {
			t.Errorf("computed %d times, want %d", len(lines), computed+1)
		}
		must(t, os.Chtimes(h.path("report"), time.Time{}, time.Now().Add(-2*time.Hour)))
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	urls := make([]string, 3)
	for i := range urls {
		urls[i] = h.start(t, "quota", "-n", "5", "-per", "1h").line(t)
	}
	get := func(i int, user string) *http.Response {
		resp, err := http.Get(urls[i%len(urls)] + "/" + user)
		must(t, err)
		resp.Body.Close()
		return resp
	}
	statuses := together(12, func(i int) string {
		resp := get(i, "ann")
		if resp.StatusCode == http.StatusTooManyRequests {
			if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || after < 1 || after > 3600/5 {
				t.Errorf("Retry-After: %q", resp.Header.Get("Retry-After"))
			}
		}
		return resp.Status
	})
	if count(statuses, "200") != 5 || count(statuses, "429") != 7 {
		t.Errorf("of 12 requests on three instances: %q; want 5 let in", statuses)
	}
	if resp := get(0, "bob"); resp.StatusCode != http.StatusOK {
		t.Errorf("another user: %s", resp.Status)
	}
}

func TestLeader(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	leads := make(chan *instance)
	for range 3 {
		i := h.start(t, "leader", "-log", h.path("log"), "-every", "2ms")
		go func() { // ends with the instance, or when it leads
			if line, _ := i.out.ReadString('\n'); line == "leading\n" {
				leads <- i
			}
		}()
	}
	first := <-leads
	must(t, first.cmd.Process.Kill())
	first.cmd.Wait()
	second := <-leads
	must(t, second.cmd.Process.Signal(syscall.SIGTERM))
	if said := second.end(t); said != "not leading any more\n" {
		t.Errorf("told to end, the leader says %q", said)
	}
	third := <-leads
	must(t, third.cmd.Process.Signal(syscall.SIGTERM))
	third.end(t)

	var leaders []string
	for _, i := range []*instance{first, second, third} {
		leaders = append(leaders, fmt.Sprint(i.cmd.Process.Pid))
	}
	if wrote := slices.Compact(h.lines(t, "log")); !slices.Equal(wrote, leaders) {
		t.Errorf("written by %v, want %v one after another", wrote, leaders)
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	hold := func(path string) *instance {
		t.Helper()
		i := h.start(t, "tree", path)
		if line := i.line(t); line != "holding "+path {
			t.Fatalf("%s: %s", path, line)
		}
		return i
	}
	busy := func(path string) {
		t.Helper()
		if said := h.run(t, "tree", path); !strings.HasPrefix(said, "busy: ") {
			t.Errorf("%s: %q, want it to be busy", path, said)
		}
	}
	web, shop := hold("tenants/acme/projects/web"), hold("tenants/acme/projects/shop")
	other := hold("tenants/zeta")
	busy("tenants/acme")
	busy("tenants/acme/projects/web/pages")
	web.end(t)
	busy("tenants/acme")
	shop.end(t)
	acme := hold("tenants/acme")
	busy("tenants/acme/projects/web")
	acme.end(t)
	other.end(t)
}

// TestEveryExampleIsInTheReadme has a line each, and a test each.
func TestEveryExampleIsInTheReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	must(t, err)
	tests, err := os.ReadFile("examples_test.go")
	must(t, err)
	mains, err := filepath.Glob("*/main.go")
	must(t, err)
	for _, main := range mains {
		name := filepath.Dir(main)
		if !strings.Contains(string(readme), "("+name+"/main.go)") {
			t.Errorf("README.md has no line about %s", name)
		}
		if !strings.Contains(string(tests), `"`+name+`", `) {
			t.Errorf("no test runs %s", name)
		}
	}
}

// programs is where TestMain builds the examples.
var programs string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "dibs-examples-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", programs+"/", "./...")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the examples:", err)
		return 1
	}
	return servers.Run(m)
}
