package web

import (
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const (
	maxBody    = 64 << 10         // of a request
	maxHeader  = 16 << 10         // of all its header fields
	headerTime = 5 * time.Second  // to send them in
	readTime   = 15 * time.Second // to send the request in
	writeTime  = 30 * time.Second // to take an answer in, after it is made
	idleTime   = time.Minute      //
	maxWait    = 60 * time.Second // Prefer: wait
	callTime   = 10 * time.Second // of a route that asks the store
	maxAtOnce  = 512              // requests
	maxStreams = 64               // of those that stay
)

// bounded limits what a client may send and how much of this process it may use.
func bounded(next http.Handler) http.Handler {
	seats := make(chan struct{}, maxAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		select {
		case seats <- struct{}{}:
			defer func() { <-seats }()
		default:
			problem(http.StatusServiceUnavailable, "busy", "%d requests are under way", maxAtOnce).retry(time.Second).write(w)
			return
		}
		if p := r.URL.Path; p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") || r.URL.Fragment != "" {
			problem(http.StatusNotFound, "", "there is nothing at %.200q", r.URL.Path).write(w)
			return
		}
		if r.ContentLength > maxBody {
			h.Set("Connection", "close") // the rest isn't read
			problem(http.StatusRequestEntityTooLarge, "", "a body of %d bytes; at most %d are taken", r.ContentLength, maxBody).write(w)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// paced has a request's read deadline be the server's alone. huma's own, 5s from
// when it reads a body, would end the context of a request that has none and waits
// longer: net/http reads on in the background, to see whether the client goes.
func paced(ctx huma.Context, next func(huma.Context)) { next(pacedContext{ctx}) }

type humaContext huma.Context // by another name: it has a method Context

type pacedContext struct{ humaContext }

func (pacedContext) SetReadDeadline(time.Time) error { return nil }

// routed is mux, with problems for what it doesn't know.
func routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if what, ok := unnamed(pattern, r.URL.Path); ok {
			problem(http.StatusNotFound, "", "%s", what).write(w)
			return
		}
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := &discard{header: http.Header{}}
		h.ServeHTTP(refused, r)
		if refused.status == http.StatusMethodNotAllowed {
			p := problem(http.StatusMethodNotAllowed, "", "%s is not allowed here; allowed: %s", r.Method, refused.header.Get("Allow"))
			p.header.Set("Allow", refused.header.Get("Allow"))
			p.write(w)
			return
		}
		problem(http.StatusNotFound, "", "there is nothing at %.200q", r.URL.Path).write(w)
	})
}

// unnamed says what a path lacks that the mux would redirect to a route for all
// that is below it.
func unnamed(pattern, path string) (hint string, ok bool) {
	_, route, _ := strings.Cut(pattern, " ")
	base, _, below := strings.Cut(route, "/{")
	if !below || strings.TrimSuffix(path, "/") != base {
		return "", false
	}
	if base == "/run" {
		return "there is no job in the path: POST /run/JOB starts one; GET /api/v1/jobs tells which there are", true
	}
	return "there is no key in the path: " + base + "/KEY is one lock; GET " + base + " tells which there are", true
}

// A discard is a ResponseWriter that keeps the head alone.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
