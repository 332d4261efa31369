package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	jobs "github.com/dibslock/dibs/cmd/internal/runner"
	"github.com/dibslock/dibs/cmd/internal/web"
)

// serving is a service from its start to its end.
type serving struct {
	*service
	runner   *jobs.Runner
	web      *web.Server
	listener net.Listener
	pair     certificate
	seen     string // the files' states, as last read
}

const (
	// fileLook is how often the configuration's files are looked at.
	fileLook = 2 * time.Second
	// lastAnswers is how long requests under way may take when all work is over.
	lastAnswers = 5 * time.Second
	// lastWords is how long the store has to hear how it all ended.
	lastWords = 10 * time.Second
)

// run serves until a signal, and then drains.
func (s *serving) run(ctx context.Context) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	server := s.web.HTTP()
	failed := make(chan error, 1)
	go func() { failed <- s.serve(server) }() // ends with server.Shutdown
	s.seen = s.files()
	look := time.NewTicker(fileLook)
	defer look.Stop()
	var err error
	for over := false; !over; {
		select {
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				s.log.Info("signal", "signal", sig.String())
				over = true
				break
			}
			s.reload()
		case <-look.C:
			if s.files() != s.seen {
				s.reload()
			}
		case err = <-failed:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
	s.end(server, signals)
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return failf(exitFailed, "can't serve any more: %v", err)
	}
	return nil
}

func (s *serving) serve(server *http.Server) error {
	if s.runner.Config().Server.TLS == nil {
		return server.Serve(s.listener)
	}
	server.TLSConfig = s.pair.config()
	return server.ServeTLS(s.listener, "", "")
}

// end drains: the work first, while the API still tells how it goes, then the API,
// then the runner. A second signal hurries.
func (s *serving) end(server *http.Server, signals <-chan os.Signal) {
	ctx, cancel := context.WithTimeout(context.Background(), s.runner.Config().Server.Drain.Duration)
	defer cancel()
	drained := make(chan struct{})
	go func() { // ends when the work has
		s.runner.Drain(ctx)
		close(drained)
	}()
	for waiting := true; waiting; {
		select {
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				s.log.Info("signal, stopping the jobs now", "signal", sig.String())
				cancel()
			}
		case <-drained:
			waiting = false
		}
	}
	last, stop := context.WithTimeout(context.Background(), lastAnswers)
	defer stop()
	go func() { // streams have no end of their own
		<-last.Done()
		_ = server.Close()
	}()
	words, done := context.WithTimeout(context.Background(), lastWords)
	defer done()
	closed := make(chan error, 1)
	go func() { closed <- s.runner.Close(words) }() // ends with words at the latest
	_ = server.Shutdown(last)
	if err := <-closed; err != nil {
		s.log.Warn("not everything was given back", "err", err)
	}
	s.log.Info("ended")
}

// files is the state of the configuration's file and of those that it names, to be
// compared: when they were changed, and how long they are.
func (s *serving) files() string {
	c := s.runner.Config().Server
	paths := []string{configPath(s.file)}
	if c.Auth != nil {
		paths = append(paths, c.Auth.TokensFile)
	}
	if c.TLS != nil {
		paths = append(paths, c.TLS.Cert, c.TLS.Key)
	}
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", path, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

var errTLS = errors.New("server.tls can't be begun or ended without a restart")

// reload puts the files as they are now in force, or says why not.
func (s *serving) reload() {
	s.seen = s.files()
	l, err := s.load()
	if err == nil && (l.pair == nil) != (s.pair.now.Load() == nil) {
		err = errTLS
	}
	if err == nil {
		err = s.runner.Reload(l.config)
	}
	if err != nil {
		s.log.Error("the configuration was not reloaded; the old one is in force", "err", err)
		return
	}
	s.web.SetUsers(l.users)
	s.pair.now.Store(l.pair)
	s.seen = s.files() // they may be others now
}
