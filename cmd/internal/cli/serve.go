package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/guard"
	jobs "github.com/dibslock/dibs/cmd/internal/runner"
	"github.com/dibslock/dibs/cmd/internal/telemetry"
	"github.com/dibslock/dibs/cmd/internal/web"
)

const serveLong = `Run jobs on a schedule and on request, each once at a time across all the instances
that share a store. There is no leader: start as many as you like, and kill any.

TERM and INT drain: nothing new is begun, what runs may end within server.drain,
and is then stopped; a second one stops it at once. HUP, or a change of the file or
of one that it names, reloads the configuration; one with mistakes is told of and
not taken.

Spans go to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names, if it is set.

The store is --store, or store.url of the configuration, or what dibs run chooses.`

func newServe() *cobra.Command {
	store := text{kind: "URL"}
	listen := text{kind: "ADDR"}
	format := text{kind: "text|json", value: "text"}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run jobs on a schedule and on request, once across all instances",
		Long:  serveLong,
		Args:  none,
	}
	file := configFile(cmd)
	f := cmd.Flags()
	f.SortFlags = false
	f.VarP(&store, "store", "s", "where locks, runs and queues are")
	f.Var(&listen, "listen", "where to listen, in place of server.listen")
	f.Var(&format, "log-format", "of the lines on stderr")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains([]string{"text", "json"}, format.value) {
			return usagef("--log-format %s: want text or json", quote(format.value))
		}
		s := &service{file: file, store: store, listen: listen.value, log: lineLogger(cmd.ErrOrStderr(), format.value)}
		return s.run(cmd.Context())
	}
	return cmd
}

// lineLogger writes a line a fact.
func lineLogger(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// A service is one dibs serve.
type service struct {
	file   *text
	store  text
	listen string // in place of the configuration's; "": none
	log    *slog.Logger
}

// A loaded is the configuration, and what is in the files that it names.
type loaded struct {
	config *config.Config
	users  *web.Users
	pair   *tls.Certificate // nil: no TLS
}

// load reads the configuration as this process is to use it.
func (s *service) load() (l loaded, err error) {
	c, _, err := loadConfig(s.file)
	if err != nil {
		return l, err
	}
	if s.listen != "" {
		c.Server.Listen = s.listen
		host, _, err := net.SplitHostPort(s.listen)
		if err != nil {
			return l, usagef("--listen %s: want host:port, such as 127.0.0.1:8080", quote(s.listen))
		}
		if c.Server.Auth == nil && !config.Loopback(host) {
			return l, failf(exitConfig, "--listen %s can be reached from elsewhere, and nobody would be asked who they are: configure server.auth, or listen on 127.0.0.1", s.listen)
		}
	}
	l.config, l.users = c, web.Open()
	if a := c.Server.Auth; a != nil {
		if l.users, err = web.LoadUsers(a.TokensFile, a.Anonymous); err != nil {
			return l, failf(exitConfig, "server.auth: %v", err)
		}
	}
	l.pair, err = loadPair(c.Server.TLS)
	return l, err
}

// place is where the store is.
func (s *service) place(c *config.Config) (place, error) {
	if !s.store.given && c.Store.URL != "" {
		return place{url: c.Store.URL, from: "from the configuration"}, nil
	}
	return choose(s.store)
}

// run serves until a signal ends it.
func (s *service) run(ctx context.Context) error {
	reaper := guard.NewReaper() // as process 1 it collects what jobs leave behind
	defer reaper.Stop()
	l, err := s.load()
	if err != nil {
		return err
	}
	c := l.config
	at, err := s.place(c)
	if err != nil {
		return err
	}
	if strings.HasPrefix(at.url, "mem:") {
		return failf(exitConfig, "can't use the store %s: it is this process's memory, and what was accepted would end with it\n%s", at, at.correction())
	}
	listener, err := net.Listen("tcp", c.Server.Listen)
	if err != nil {
		return failf(exitFailed, "can't listen: %v", err)
	}
	defer listener.Close()
	store, err := at.open(ctx)
	if err != nil {
		return err
	}
	outer := outerKeys(os.Getenv(keysVar))
	metrics := telemetry.New(store.Facts().Driver)
	traces, err := telemetry.NewTraces(ctx, programVersion(), s.log)
	if err != nil {
		s.log.Warn("no spans are sent", "err", err)
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		if err := traces.Close(last); err != nil {
			s.log.Warn("the last spans were not sent", "err", err)
		}
	}()
	r, err := jobs.New(ctx, jobs.Options{
		Config: c, Store: store, Log: s.log,
		Hooks: dibs.JoinHooks(metrics.Hooks(), logHooks(s.log), traces.Hooks()), Observer: metrics.Observer(), Tracers: traces.Provider(),
		Who: fmt.Sprintf("%s@%s (pid %d)", userName(), hostName(), os.Getpid()), Version: programVersion(), Listen: listener.Addr().String(),
		Keys: func(lock string, fence uint64) string {
			return keysWith(outer, heldKey{lock, identity(at.url), os.Getpid(), fence})
		},
	})
	if err != nil {
		return at.cannot("start the runner", "", err)
	}
	metrics.Up(r.Ready)
	server := web.New(web.Options{Runner: r, Store: store, Users: l.users, Metrics: metrics.Handler(), Log: s.log, Version: programVersion()})
	s.log.Info("serving", "listen", listener.Addr().String(), "store", at.String(), "jobs", len(c.Jobs), "instance", r.ID(), "version", programVersion())
	if l := guard.Limits(); l != "" {
		s.log.Warn("on this system " + l)
	}
	serving := &serving{service: s, runner: r, web: server, listener: listener}
	serving.pair.now.Store(l.pair)
	return serving.run(ctx)
}

// programVersion is what dibs version prints first.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
