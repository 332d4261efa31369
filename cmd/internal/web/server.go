package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/dibslock/dibs/cmd/internal/runner"
	"github.com/dibslock/dibs/driver"
)

// Options are what a server is made with.
type Options struct {
	Runner  *runner.Runner
	Store   driver.Store // the runner's
	Users   *Users
	Metrics http.Handler // nil: none
	Log     *slog.Logger
	Version string

	// Patience is how long a client may take to take in what a stream says before
	// it is left; 0: half a minute.
	Patience time.Duration
}

// A Server answers for a runner. It is safe for concurrent use.
type Server struct {
	run     *runner.Runner
	store   driver.Store
	users   atomic.Pointer[Users]
	log     *slog.Logger
	handler http.Handler
	api     huma.API
	streams chan struct{}

	patience time.Duration
}

// New returns one.
func New(o Options) *Server {
	s := &Server{run: o.Runner, store: o.Store, log: o.Log, streams: make(chan struct{}, maxStreams), patience: cmp.Or(o.Patience, writeTime)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.users.Store(o.Users)
	mux := http.NewServeMux()
	config := huma.DefaultConfig("dibs serve", o.Version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // no $schema in answers
	config.Info.Description = "Jobs that run once at a time across all instances."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	config.RejectUnknownQueryParameters = true
	config.Formats = formats
	s.api = humago.New(mux, config)
	s.api.UseMiddleware(paced)
	s.routeRun()
	s.routeRuns()
	s.routeJobs()
	s.routeLocks()
	s.routeHealth()
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /openapi.json", s.document)
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	s.polish(o.Metrics != nil)
	s.handler = bounded(unambiguous(ownOrigin(func() bool { return len(s.users.Load().list) > 0 }, authenticated(s.users.Load, tagged(routed(mux))))))
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// SetUsers puts others in place of those who have tokens.
func (s *Server) SetUsers(u *Users) { s.users.Store(u) }

// HTTP returns a server for it with limits in time and size.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, IdleTimeout: idleTime,
		WriteTimeout:   maxWait + writeTime, // an upper bound; streams move it
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// op is a route. Every one can end in a problem.
func op(method, path, id, summary string, errors ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary,
		Errors:   append(errors, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusServiceUnavailable),
		Security: []map[string][]string{{"token": {}}, {}},
	}
}

// asking bounds what a route asks of the store.
func asking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTime)
}
