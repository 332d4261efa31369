package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/cmd/internal/runner"
	"github.com/dibslock/dibs/cmd/internal/telemetry"
	"github.com/dibslock/dibs/cmd/internal/web"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"

	_ "github.com/dibslock/dibs/sqlitelock"
)

func TestMain(m *testing.M) {
	reaper := guard.NewReaper()
	code := servers.Run(m)
	reaper.Stop()
	os.Exit(code)
}

// A site is one instance with its server.
type site struct {
	*testing.T
	run *runner.Runner
	web *web.Server
	srv *httptest.Server
	log *safe
	doc *document
}

type safe struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// newSite starts one over the store in dir. adjust may change its limits.
func newSite(t *testing.T, dir, jobs string, users *web.Users, adjust ...func(*http.Server)) *site {
	t.Helper()
	return newSiteOver(t, "sqlite://"+filepath.Join(dir, "locks.db")+"?journal=on", jobs, web.Options{Users: users}, adjust...)
}

// newSiteOver starts one over any store, with options.
func newSiteOver(t *testing.T, store, jobs string, o web.Options, adjust ...func(*http.Server)) *site {
	t.Helper()
	c, err := config.Parse("test", []byte("version: 1\njobs:\n"+jobs), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, log: &safe{}}
	o.Log, o.Version = slog.New(slog.NewTextHandler(s.log, nil)), "test"
	if o.Store, err = driver.Open(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	metrics := telemetry.New(o.Store.Facts().Driver)
	if s.run, err = runner.New(t.Context(), runner.Options{Config: c, Store: o.Store, Log: o.Log, Version: o.Version, Hooks: metrics.Hooks(), Observer: metrics.Observer()}); err != nil {
		t.Fatal(err)
	}
	o.Runner, o.Metrics = s.run, metrics.Handler()
	s.web = web.New(o)
	s.srv = httptest.NewUnstartedServer(nil)
	s.srv.Config = s.web.HTTP()
	for _, f := range adjust {
		f(s.srv.Config)
	}
	s.srv.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.run.Close(ctx); err != nil {
			t.Error(err)
		}
		s.srv.Close()
	})
	return s
}

// An answer is a response that was read, and checked against the document.
type answer struct {
	*http.Response
	text string
}

// problem returns the answer's problem; it must be one.
func (a answer) problem(t *testing.T) web.Problem {
	t.Helper()
	var p web.Problem
	if err := json.Unmarshal([]byte(a.text), &p); err != nil || a.Header.Get("Content-Type") != "application/problem+json" || p.Status != a.StatusCode || p.Detail == "" || p.Title == "" {
		t.Errorf("no problem: %d %s %q", a.StatusCode, a.Header.Get("Content-Type"), a.text)
	}
	return p
}

func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		t.Fatalf("%v: %q", err, a.text)
	}
	return v
}

// do makes a request. header has names and values in turn.
func (s *site) do(method, path, body string, header ...string) answer {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.srv.URL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		name := http.CanonicalHeaderKey(header[i])
		if name == "Content-Type" {
			req.Header.Del(name)
		}
		if req.Header.Add(name, header[i+1]); name == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		s.Fatal(err)
	}
	a := answer{resp, string(data)}
	s.matches(req, a)
	return a
}

// A document is the API's description, as the tests check answers against it.
type document struct {
	tree     map[string]any
	compiler *jsonschema.Compiler
}

// documented makes s check all answers from now on. The document itself must be
// one by the schema that the OpenAPI Initiative publishes.
func (s *site) documented() {
	s.Helper()
	tree, err := jsonschema.UnmarshalJSON(strings.NewReader(s.do("GET", "/openapi.json", "").text))
	if err != nil {
		s.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if _, err := c.Compile("testdata/openapi-3.1-schema.json"); err != nil {
		s.Fatal(err)
	}
	if err := c.MustCompile("testdata/openapi-3.1-schema.json").Validate(tree); err != nil {
		s.Errorf("the document: %v", err)
	}
	if err := c.AddResource("openapi.json", tree); err != nil {
		s.Fatal(err)
	}
	s.doc = &document{tree: tree.(map[string]any), compiler: c}
}

// matches checks an answer against the document.
func (s *site) matches(req *http.Request, a answer) {
	s.Helper()
	if s.doc == nil || a.StatusCode == http.StatusNotModified || req.Method == http.MethodHead {
		return
	}
	route := s.doc.route(req.URL.Path)
	status := strconv.Itoa(a.StatusCode)
	kind := a.Header.Get("Content-Type")
	if path := req.URL.Path; path == "/metrics" || path == "/events" { // the version of the format is no part of it
		kind, _, _ = strings.Cut(kind, ";")
	}
	at := []string{"paths", route, strings.ToLower(req.Method), "responses", status, "content", kind, "schema"}
	var node any = s.doc.tree
	var where strings.Builder
	where.WriteString("openapi.json#")
	for _, key := range at {
		m, _ := node.(map[string]any)
		if node = m[key]; node == nil {
			if key == "content" && a.text == "" {
				return
			}
			s.Errorf("%s %s answers %d %s, of which the document has no %s\n%s", req.Method, req.URL, a.StatusCode, kind, key, a.text)
			return
		}
		where.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(key)))
	}
	if !strings.HasSuffix(kind, "json") {
		return
	}
	schema, err := s.doc.compiler.Compile(where.String())
	if err != nil {
		s.Fatal(err)
	}
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(a.text))
	if err == nil {
		err = schema.Validate(body)
	}
	if err != nil {
		s.Errorf("%s %s answers %d, and not as the document says: %v\n%s", req.Method, req.URL, a.StatusCode, err, a.text)
	}
}

// route finds the path of the document that a request's is of. A job's id and a
// key are one segment there.
func (d *document) route(path string) string {
	for _, prefix := range []string{"/run/", "/api/v1/locks/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && rest != "" {
			path = prefix + "x"
		}
	}
	if rest, ok := strings.CutPrefix(path, "/api/v1/jobs/"); ok {
		id, verb := rest, ""
		for _, v := range []string{"/pause", "/resume"} {
			if before, ok := strings.CutSuffix(rest, v); ok {
				id, verb = before, v
			}
		}
		path = "/api/v1/jobs/" + strings.ReplaceAll(id, "/", "-") + verb
	}
	got := strings.Split(path, "/")
next:
	for route := range d.tree["paths"].(map[string]any) {
		want := strings.Split(route, "/")
		if len(want) != len(got) {
			continue
		}
		for i := range want {
			if want[i] != got[i] && !strings.HasPrefix(want[i], "{") {
				continue next
			}
		}
		return route
	}
	return path
}
