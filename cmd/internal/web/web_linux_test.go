package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/web"
)

const jobs = `  quick: { command: [sh, -c, 'echo hello'] }
  bad: { command: [sh, -c, 'exit 3'] }
  slow: { command: [sleep, '60'] }
  limited: { command: 'true', rate_limit: { runs: 2, per: 1h } }
  line: { command: [sleep, '60'], on_conflict: queue, queue: { max: 2 } }
  ticking: { command: 'true', schedule: '@daily', timezone: Europe/Berlin }
  both: { command: 'true', trigger_methods: [GET, POST] }
  'tenant/{tenant}': { command: [echo, '{{.Params.tenant}}', '{{.Params.day}}'], params: { day: '[0-9-]+' } }
`

// TestAPI goes through every route; each answer is checked against the document.
func TestAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), jobs, web.Open())
	s.documented()

	// A run that is awaited, and one that fails: both are 200.
	a := s.do("POST", "/run/quick", "", "Prefer", "wait=30")
	run := decode[web.Run](t, a)
	if a.StatusCode != 200 || run.State != "succeeded" || run.Fence == "" || *run.Exit != 0 || a.Header.Get("Preference-Applied") != "wait=30" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := s.do("POST", "/run/bad", "", "Prefer", "respond-async, wait=30"); a.StatusCode != 200 || decode[web.Run](t, a).State != "failed" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	where := a.Header.Get("Location")
	if where != "/api/v1/runs/"+run.ID {
		t.Errorf("it is at %q", where)
	}
	if got := decode[web.Run](t, s.do("GET", where, "")); got.ID != run.ID || got.By != "anonymous" || got.Trigger != "http" {
		t.Errorf("%+v", got)
	}
	if a := s.do("GET", where+"/log", ""); a.text != "hello\n" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%q", a.text)
	}
	if a := s.do("GET", where+"/log?follow=true", ""); a.text != "hello\n" {
		t.Errorf("%q", a.text)
	}

	// 409 with the holder, and what it takes to end that.
	a = s.do("POST", "/run/slow", "")
	slow := decode[web.Run](t, a)
	if a.StatusCode != 202 || slow.State != "running" {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	a = s.do("POST", "/run/slow", "")
	p := a.problem(t)
	if after, err := strconv.Atoi(a.Header.Get("Retry-After")); a.StatusCode != 409 || p.Type != "urn:dibs:already-running" || err != nil || after < 1 || after > 31 || p.Holder == nil || !strings.Contains(p.Holder.Note, slow.ID) {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.text)
	}
	look := decode[web.Job](t, s.do("GET", "/run/slow", ""))
	if look.Current == nil || look.Current.ID != slow.ID || look.Last != nil {
		t.Errorf("%+v", look)
	}
	if a := s.do("POST", "/api/v1/runs/"+slow.ID+"/cancel", ""); a.StatusCode != 202 {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	until(t, "it is cancelled", func() bool { return decode[web.Job](t, s.do("GET", "/run/slow", "")).Last != nil })
	if a := s.do("POST", "/api/v1/runs/"+slow.ID+"/cancel", ""); a.StatusCode != 409 || a.problem(t).Type != "urn:dibs:ended" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}

	// 429, with what is left.
	for i := range 3 {
		until(t, "the lock is free", func() bool { return s.do("GET", "/api/v1/locks/job:limited", "").StatusCode == 404 })
		a := s.do("POST", "/run/limited", "")
		if want := []int{202, 202, 429}[i]; a.StatusCode != want || a.Header.Get("RateLimit-Policy") != `"runs";q=2;w=3600` || !strings.HasPrefix(a.Header.Get("RateLimit"), fmt.Sprintf(`"runs";r=%d;t=`, max(1-i, 0))) {
			t.Errorf("run %d: %d %v", i, a.StatusCode, a.Header)
		}
		if i == 2 && (a.problem(t).Type != "urn:dibs:rate-limited" || !near(a.Header.Get("Retry-After"), 1800)) {
			t.Errorf("%v %s", a.Header, a.text)
		}
	}

	// The queue.
	for i, want := range []int{202, 202, 202, 429} {
		a := s.do("POST", "/run/line", "")
		if a.StatusCode != want {
			t.Errorf("%d: %d %s", i, a.StatusCode, a.text)
		}
		if want == 429 && a.problem(t).Type != "urn:dibs:queue-full" {
			t.Errorf("%s", a.text)
		}
		if i == 0 {
			until(t, "it runs", func() bool {
				job := decode[web.Job](t, s.do("GET", "/run/line", ""))
				return job.Current != nil && job.Queued == 0
			})
		}
	}
	if got := decode[web.Job](t, s.do("GET", "/api/v1/jobs/line", "")); got.Queued != 2 {
		t.Errorf("%+v", got)
	}

	// A key is one run; 422 for another payload.
	first := decode[web.Run](t, s.do("POST", "/run/tenant/acme", `{"params":{"day":"2026-01-01"}}`, "Idempotency-Key", "k"))
	a = s.do("POST", "/run/tenant/acme", `{"params":{"day":"2026-01-01"}}`, "Idempotency-Key", "k")
	if a.StatusCode != 202 || a.Header.Get("Idempotent-Replayed") != "true" || decode[web.Run](t, a).ID != first.ID {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.text)
	}
	if a := s.do("POST", "/run/tenant/acme", `{"params":{"day":"2026-01-02"}}`, "Idempotency-Key", "k"); a.StatusCode != 422 || a.problem(t).Type != "urn:dibs:key-reused" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	until(t, "it has ended", func() bool { return decode[web.Run](t, s.do("GET", "/api/v1/runs/"+first.ID, "")).Ended != nil })
	if a := s.do("GET", "/api/v1/runs/"+first.ID+"/log", ""); a.text != "acme 2026-01-01\n" {
		t.Errorf("%q", a.text)
	}

	// Pause.
	if a := s.do("POST", "/api/v1/jobs/quick/pause", `{"reason":"maintenance"}`); a.StatusCode != 200 || decode[web.Job](t, a).Paused.Reason != "maintenance" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := s.do("POST", "/run/quick", ""); a.StatusCode != 423 || a.problem(t).Type != "urn:dibs:paused" || !strings.Contains(a.problem(t).Detail, "maintenance") {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := s.do("POST", "/api/v1/jobs/quick/resume", ""); a.StatusCode != 200 || decode[web.Job](t, a).Paused != nil {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := s.do("POST", "/api/v1/jobs/tenant%2Facme/pause", ""); a.StatusCode != 200 || decode[web.Job](t, a).ID != "tenant/acme" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}

	// Lists.
	list := decode[struct {
		Jobs []web.Job
		Next string
	}](t, s.do("GET", "/api/v1/jobs?limit=3", ""))
	if len(list.Jobs) != 3 || list.Next == "" || list.Jobs[0].ID != "bad" {
		t.Errorf("%+v", list)
	}
	more := decode[struct{ Jobs []web.Job }](t, s.do("GET", "/api/v1/jobs?cursor="+list.Next, ""))
	if len(more.Jobs) != 5 || more.Jobs[len(more.Jobs)-1].Next == nil || !more.Jobs[3].Pattern {
		t.Errorf("%+v", more)
	}
	var ids []string
	for next := ""; ; {
		page := decode[struct {
			Runs []web.Run
			Next string
		}](t, s.do("GET", "/api/v1/runs?limit=2&cursor="+next, ""))
		for _, r := range page.Runs {
			if len(ids) > 0 && r.ID >= ids[len(ids)-1] {
				t.Errorf("%s follows %s", r.ID, ids[len(ids)-1])
			}
			ids = append(ids, r.ID)
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if len(ids) < 9 {
		t.Errorf("%d runs are listed", len(ids))
	}
	some := decode[struct{ Runs []web.Run }](t, s.do("GET", "/api/v1/runs?job=limited&state=succeeded", ""))
	if len(some.Runs) != 2 {
		t.Errorf("%+v", some)
	}

	// Locks, and taking one away.
	lock := s.do("GET", "/api/v1/locks/job:line", "")
	tag := lock.Header.Get("ETag")
	if l := decode[web.Lock](t, lock); len(l.Holders) != 1 || tag != `"`+l.Holders[0].Token+`"` {
		t.Errorf("%s %s", tag, lock.text)
	}
	if l := decode[struct{ Locks []web.Lock }](t, s.do("GET", "/api/v1/locks?prefix=job:l", "")); len(l.Locks) != 1 {
		t.Errorf("%+v", l)
	}
	for _, tt := range []struct {
		match string
		want  int
	}{{"", 428}, {`"1"`, 412}, {"x", 412}, {tag, 202}} {
		header := []string{"If-Match", tt.match}
		if tt.match == "" {
			header = nil
		}
		if a := s.do("DELETE", "/api/v1/locks/job:line?reason=test", "", header...); a.StatusCode != tt.want {
			t.Errorf("If-Match %s: %d %s", tt.match, a.StatusCode, a.text)
		}
	}
	if !strings.Contains(s.log.String(), "msg=audit") || !strings.Contains(s.log.String(), "action=revoke") {
		t.Error("the audit trail lacks it")
	}
	history := decode[struct{ Events []web.Event }](t, s.do("GET", "/api/v1/history?prefix=job:line", ""))
	if len(history.Events) == 0 || history.Events[0].Kind != "granted" {
		t.Errorf("%+v", history)
	}

	// The rest.
	if got := decode[struct{ Instances []web.Instance }](t, s.do("GET", "/api/v1/instances", "")); len(got.Instances) != 1 || !got.Instances[0].Self {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json"} {
		if a := s.do("GET", path, ""); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.text)
		}
	}
	a = s.do("GET", "/api/v1/jobs/bad", "")
	if b := s.do("GET", "/api/v1/jobs/bad", "", "If-None-Match", `"x", `+a.Header.Get("ETag")); b.StatusCode != 304 || b.text != "" {
		t.Errorf("%d %q", b.StatusCode, b.text)
	}
}

func near(text string, want int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > want-60 && n <= want
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not after five minutes: %s", what)
		}
	}
}

// TestAGetStartsOnlyWhatIsMeant: no HEAD, no prefetch, no other site's page.
func TestAGetStartsOnlyWhatIsMeant(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), jobs, web.Open())
	s.documented()
	s.do("HEAD", "/run/both", "")
	for _, header := range [][2]string{{"Sec-Purpose", "prefetch"}, {"Purpose", "prefetch"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		if a := s.do("GET", "/run/both", "", header[0], header[1]); a.StatusCode != 200 {
			t.Errorf("%v: %d", header, a.StatusCode)
		}
	}
	if got := decode[web.Job](t, s.do("GET", "/api/v1/jobs/both", "")); got.Current != nil || got.Last != nil {
		t.Errorf("%+v", got)
	}
	first := s.do("GET", "/run/both", "", "Idempotency-Key", "k", "Prefer", "wait=30")
	if first.StatusCode != 200 || first.Header.Get("Preference-Applied") != "wait=30" || decode[web.Run](t, first).State != "succeeded" {
		t.Errorf("%d %v %s", first.StatusCode, first.Header, first.text)
	}
	if a := s.do("GET", "/run/both", "", "Idempotency-Key", "k"); a.Header.Get("Idempotent-Replayed") != "true" || a.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.text)
	}
}

// TestHostileRequests get a problem, and nothing else happens.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), jobs, web.Open())
	s.documented()
	big := `{"params":{"day":"` + strings.Repeat("1", 1<<20) + `"}}`
	for _, tt := range []struct {
		name, method, path, body string
		header                   []string
		want                     int
	}{
		{"malformed JSON", "POST", "/run/quick", `{"params":`, nil, 400},
		{"another type", "POST", "/run/quick", `[]`, nil, 422},
		{"an unknown key", "POST", "/run/quick", `{"force":true}`, nil, 422},
		{"a huge body", "POST", "/run/quick", big, nil, 413},
		{"an unknown parameter", "POST", "/run/quick", `{"params":{"x":"y"}}`, nil, 422},
		{"a hostile parameter", "POST", "/run/tenant/acme", `{"params":{"day":"; rm -rf /"}}`, nil, 422},
		{"an option", "POST", "/run/tenant/--help", "", nil, 404},
		{"a newline", "POST", "/run/tenant/a%0ab", "", nil, 404},
		{"NUL", "POST", "/run/tenant/a%00b", "", nil, 404},
		{"dots", "POST", "/run/tenant/..", "", nil, 404},
		{"coded dots", "POST", "/run/tenant/%2e%2e", "", nil, 404},
		{"slashes", "POST", "/run//quick", "", nil, 404},
		{"a coded slash", "POST", "/run/tenant/a%2f..%2fb", "", nil, 404},
		{"markup", "POST", "/run/%3Cscript%3E", "", nil, 404},
		{"a long id", "POST", "/run/" + strings.Repeat("a", 300), "", nil, 422},
		{"no run", "GET", "/api/v1/runs/x", "", nil, 404},
		{"an id that is none", "GET", "/api/v1/runs/..%2fjob%2fquick", "", nil, 404},
		{"a cursor that is none", "GET", "/api/v1/runs?cursor=%21", "", nil, 400},
		{"a limit that is none", "GET", "/api/v1/runs?limit=1000000", "", nil, 422},
		{"a state that is none", "GET", "/api/v1/runs?state=x", "", nil, 422},
		{"an unknown query", "GET", "/api/v1/runs?x=y", "", nil, 422},
		{"another site", "POST", "/run/quick", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another origin", "POST", "/run/quick", "", []string{"Origin", "https://evil.example"}, 403},
		{"a rebound name", "POST", "/run/quick", "", []string{"Host", "evil.example"}, 421},
		{"a long key", "POST", "/run/quick", "", []string{"Idempotency-Key", strings.Repeat("k", 256)}, 422},
		{"a form", "POST", "/run/quick", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"a form for a pause", "POST", "/api/v1/jobs/quick/pause", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"a huge reason", "POST", "/api/v1/jobs/quick/pause", big, nil, 413},
		{"a key twice", "POST", "/run/quick", "", []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 400},
		{"the same key twice", "POST", "/run/quick", "", []string{"Idempotency-Key", "a", "Idempotency-Key", "a"}, 400},
		{"an empty key", "POST", "/run/quick", "", []string{"Idempotency-Key", ""}, 400},
		{"an empty key for a GET", "GET", "/run/both", "", []string{"Idempotency-Key", ""}, 400},
		{"two holders", "DELETE", "/api/v1/locks/job:quick", "", []string{"If-Match", `"1"`, "If-Match", `"2"`}, 400},
		{"whoever holds it", "DELETE", "/api/v1/locks/job:quick", "", []string{"If-Match", "*"}, 428},
		{"two tokens", "POST", "/run/quick", "", []string{"Authorization", "Bearer a", "Authorization", "Bearer b"}, 400},
		{"params twice", "POST", "/run/tenant/acme", `{"params":{"day":"1"},"params":{"day":"2"}}`, nil, 400},
		{"a parameter twice", "POST", "/run/tenant/acme", `{"params":{"day":"1","d\u0061y":"2"}}`, nil, 400},
		{"a reason twice", "POST", "/api/v1/jobs/quick/pause", `{"reason":"a","reason":"b"}`, nil, 400},
		{"a key by another case", "POST", "/run/tenant/acme", `{"Params":{"day":"1"}}`, nil, 422},
		{"something after it", "POST", "/run/quick", `{} {}`, nil, 400},
		{"no UTF-8", "POST", "/run/tenant/acme", "{\"params\":{\"day\":\"\xff\"}}", nil, 400},
		{"a query twice", "GET", "/api/v1/runs?limit=1&limit=2", "", nil, 400},
		{"a query that is none", "GET", "/api/v1/runs?limit=%zz", "", nil, 400},
		{"no job", "POST", "/run", "", nil, 404},
		{"no job either", "POST", "/run/", "", nil, 404},
		{"no job to look at", "GET", "/run", "", nil, 404},
		{"no lock", "DELETE", "/api/v1/locks", "", []string{"If-Match", `"1"`}, 404},
		{"no lock to look at", "GET", "/api/v1/locks/", "", nil, 404},
		{"no method", "PUT", "/run/quick", "", nil, 405},
		{"no path", "GET", "/nothing", "", nil, 404},
		{"no page", "GET", "/", "", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := *s
			s.T = t
			if tt.want == 405 || strings.HasPrefix(tt.path, "/nothing") || tt.path == "/" || strings.Contains(tt.path, "//") || strings.Contains(tt.path, "..") || strings.Contains(tt.path, "%2e") || strings.HasPrefix(tt.name, "no job") || strings.HasPrefix(tt.name, "no lock") || tt.want == 403 || tt.want == 421 {
				s.doc = nil // not from a route
			}
			a := s.do(tt.method, tt.path, tt.body, tt.header...)
			if a.StatusCode != tt.want {
				t.Errorf("%d %s", a.StatusCode, a.text)
			}
			for kind, say := range map[string]string{"a form": "Content-Type: application/json", "no job": "POST /run/JOB", "whoever": `If-Match: "TOKEN"`, "an empty key": "a new random value"} {
				if p := a.problem(t); strings.HasPrefix(tt.name, kind) && !strings.Contains(p.Detail, say) {
					t.Errorf("it does not say what to do: %s", p.Detail)
				}
			}
			if a.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%v", a.Header)
			}
			if tt.want == 405 && a.Header.Get("Allow") == "" {
				t.Error("no Allow")
			}
		})
	}
	if got := decode[struct{ Runs []web.Run }](t, s.do("GET", "/api/v1/runs", "")); len(got.Runs) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestAStoreThatVanishes is a 503 and no fault of the client, and is told of once
// and not with each attempt.
func TestAStoreThatVanishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t, dir, jobs, web.Open())
	s.documented()
	if a := s.do("POST", "/run/quick", ""); a.StatusCode != 202 {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	file := filepath.Join(dir, "locks.db")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/run/quick", "/api/v1/jobs/quick/pause"} {
		a := s.do("POST", path, "")
		if p := a.problem(t); a.StatusCode != 503 || p.Type != "urn:dibs:store-refuses" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.StatusCode, a.text)
		}
	}
	until(t, "it isn't ready", func() bool { return s.do("GET", "/readyz", "").StatusCode != 200 })
	if a := s.do("GET", "/readyz", ""); a.StatusCode != 503 {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if n := strings.Count(s.log.String(), "the store doesn't answer"); n < 1 || n > 3 {
		t.Errorf("told %d times", n)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	until(t, "the store is back", func() bool { return strings.Contains(s.log.String(), "the store answers again") })
}

// TestBadRevocations are the client's fault.
func TestBadRevocations(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), jobs, web.Open())
	s.documented()
	for _, path := range []string{"a%00b", "a%ff", "quick?reason=" + strings.Repeat("%F0%9F%94%92", 400)} {
		if a := s.do("DELETE", "/api/v1/locks/"+path, "", "If-Match", `"1"`); a.StatusCode != 422 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.text)
		}
	}
}

// TestHeadersCantBeInjected by what a client sends.
func TestHeadersCantBeInjected(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), jobs, web.Open())
	conn, err := net.Dial("tcp", s.srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /run/quick%%0d%%0aX-Evil:%%201 HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: a\x0bb\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("X-Evil") != "" || resp.StatusCode/100 != 4 {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// TestLogsAreText whatever is in them.
func TestLogsAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "  evil: { command: [printf, '<script>alert(1)</script>\\033[2J\\000'] }\n", web.Open())
	s.documented()
	run := decode[web.Run](t, s.do("POST", "/run/evil", "", "Prefer", "wait=30"))
	a := s.do("GET", "/api/v1/runs/"+run.ID+"/log", "")
	if a.text != "<script>alert(1)</script>\x1b[2J\x00" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v %q", a.Header, a.text)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	const reader, runs, admin = "reader-reader-reader", "runner-runner-runner", "admin-admin-admin-admin"
	if err := os.WriteFile(file, []byte("# who\nr read "+reader+"\n\nu run "+runs+"\na admin "+admin+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for anonymous, public := range map[string]bool{"none": false, "read": true} {
		users, err := web.LoadUsers(file, anonymous)
		if err != nil {
			t.Fatal(err)
		}
		s := newSite(t, dir, jobs, users)
		for _, tt := range []struct {
			method, path string
			need         int // 0 nobody, 1 read, 2 run, 3 admin
		}{
			{"GET", "/healthz", 0},
			{"GET", "/readyz", 0},
			{"GET", "/api/v1/jobs", 1},
			{"GET", "/openapi.json", 1},
			{"GET", "/run/both", 2},
			{"POST", "/run/none", 2},
			{"POST", "/api/v1/runs/x/cancel", 2},
			{"POST", "/api/v1/jobs/none/pause", 3},
			{"POST", "/api/v1/jobs/none/resume", 3},
			{"DELETE", "/api/v1/locks/x", 3},
		} {
			for have, token := range []string{"", reader, runs, admin} {
				var header []string
				if token != "" {
					header = []string{"Authorization", "Bearer " + token}
				}
				a := s.do(tt.method, tt.path, "", header...)
				ok := have >= tt.need || public && tt.need == 1
				switch {
				case ok && (a.StatusCode == 401 || a.StatusCode == 403):
					t.Errorf("%s %s with role %d: %d", tt.method, tt.path, have, a.StatusCode)
				case !ok && have == 0 && (a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") == ""):
					t.Errorf("%s %s without a token: %d", tt.method, tt.path, a.StatusCode)
				case !ok && have > 0 && a.StatusCode != 403:
					t.Errorf("%s %s with role %d: %d", tt.method, tt.path, have, a.StatusCode)
				}
			}
		}
		for _, bad := range []string{"Bearer x", "Bearer", "Basic " + admin, "Bearer " + admin + "x"} {
			if a := s.do("GET", "/api/v1/jobs", "", "Authorization", bad); a.StatusCode != 401 {
				t.Errorf("%q: %d", bad, a.StatusCode)
			}
		}
		if got := decode[web.Run](t, s.do("POST", "/run/quick", "", "Prefer", "wait=30", "Authorization", "Bearer "+runs)); got.By != "u" {
			t.Errorf("%+v", got)
		}
	}
	for _, text := range []string{"", "a admin", "a boss 0123456789abcdef", "a admin short", "a none 0123456789abcdef", "a read 0123456789abcdef\nb admin 0123456789abcdef"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := web.LoadUsers(file, "none"); err == nil || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestUsersCanBeReplaced while it serves: also for whom a name of another host is
// taken.
func TestUsersCanBeReplaced(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("a admin 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	some, err := web.LoadUsers(file, "none")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, t.TempDir(), jobs, web.Open())
	for _, tt := range []struct {
		users       *web.Users
		name, token string
		want        int
	}{
		{web.Open(), "127.0.0.1", "", 200},
		{web.Open(), "evil.example", "", 421},
		{some, "jobs.example", "", 401},
		{some, "jobs.example", "Bearer 0123456789abcdef", 200},
		{web.Open(), "evil.example", "", 421},
	} {
		s.web.SetUsers(tt.users)
		header := []string{"Host", tt.name}
		if tt.token != "" {
			header = append(header, "Authorization", tt.token)
		}
		if a := s.do("GET", "/api/v1/jobs", "", header...); a.StatusCode != tt.want {
			t.Errorf("%+v: %d %s", tt, a.StatusCode, a.text)
		}
	}
}

// TestEvents: a snapshot, then changes; who comes back gets what it missed.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), jobs, web.Open())
	if head := s.do("HEAD", "/events", ""); head.StatusCode != 200 {
		t.Errorf("%d", head.StatusCode)
	}
	kind, id, data := "", "", ""
	read := func(r *bufio.Scanner) bool {
		kind, id, data = "", "", ""
		for r.Scan() {
			name, value, _ := strings.Cut(r.Text(), ": ")
			switch name {
			case "event":
				kind = value
			case "id":
				id = value
			case "data":
				data += value
			case "":
				if kind != "" {
					return true
				}
			}
		}
		return false
	}
	connect := func(last string) (*bufio.Scanner, func()) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", s.srv.URL+"/events", nil)
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Fatal(got)
		}
		r := bufio.NewScanner(resp.Body)
		r.Buffer(nil, 1<<20)
		return r, func() { _ = resp.Body.Close() }
	}
	r, stop := connect("")
	if !read(r) || kind != "snapshot" || !strings.Contains(data, `"id":"quick"`) {
		t.Fatalf("%s %s", kind, data)
	}
	last := id
	run := decode[web.Run](t, s.do("POST", "/run/quick", "", "Prefer", "wait=30"))
	states := ""
	for !strings.Contains(states, "succeeded") && read(r) {
		if kind == "run" && strings.Contains(data, run.ID) {
			_, state, _ := strings.Cut(data, `"state":"`)
			state, _, _ = strings.Cut(state, `"`)
			states += " " + state
		}
	}
	if states != " running succeeded" {
		t.Errorf("it was%s", states)
	}
	stop()
	r, stop = connect(last)
	if !read(r) || kind == "snapshot" {
		t.Errorf("who comes back gets a %s", kind)
	}
	stop()
	r, stop = connect("another." + last)
	if !read(r) || kind != "snapshot" {
		t.Errorf("who comes from elsewhere gets a %s", kind)
	}
	stop()
}

// TestALogCanBeFollowed while the run goes on.
func TestALogCanBeFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t, dir, "  a: { command: [sh, -c, 'echo one; until [ -e "+dir+"/go ]; do sleep 0.02; done; echo two'] }\n", web.Open())
	run := decode[web.Run](t, s.do("POST", "/run/a", ""))
	resp, err := http.Get(s.srv.URL + "/api/v1/runs/" + run.ID + "/log?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewScanner(resp.Body)
	if !r.Scan() || r.Text() != "one" {
		t.Fatalf("%q, %v", r.Text(), r.Err())
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !r.Scan() || r.Text() != "two" || r.Scan() {
		t.Errorf("%q, %v", r.Text(), r.Err())
	}
}
