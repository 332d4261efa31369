package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/driver"
)

// Options are what a runner is made with.
type Options struct {
	Config   *config.Config
	Store    driver.Store // closed with the runner
	Log      *slog.Logger
	Hooks    dibs.Hooks // of the locks
	Observer Observer
	Tracers  trace.TracerProvider // nil: no spans
	Who      string               // how a holder names itself: user@host (pid n)
	Version  string
	Listen   string

	// Keys is the DIBS_KEYS of a command under a lock, by which a dibs run within
	// refuses to wait for that lock; nil: just the lock.
	Keys func(lock string, fence uint64) string

	// ClockOffset is how far off this instance's clock is; for tests.
	ClockOffset time.Duration
}

// An Observer is told what becomes of jobs, by their ids in the configuration.
// Its funcs may be nil.
type Observer struct {
	Ended   func(job string, state book.State, took time.Duration)
	Skipped func(job, reason string)
	Limited func(job string)
	Next    func(job string, at time.Time)
	Skew    func(d time.Duration) // of this instance's clock and the store's
	Request func(d time.Duration) // one call of the store for a record
}

// A Runner is one instance. It is safe for concurrent use.
type Runner struct {
	id     string
	opts   Options
	config atomic.Pointer[config.Config]
	client *dibs.Client
	book   *book.Book
	roster *roster
	hub    *hub
	log    *slog.Logger
	tracer trace.Tracer

	ctx      context.Context // ends when the runner does, after the work
	stop     context.CancelCauseFunc
	intake   context.Context // ends when it drains: nothing new is begun
	drain    context.CancelCauseFunc
	toil     context.Context // ends when the work is to be stopped
	halt     context.CancelCauseFunc
	loops    sync.WaitGroup // roster, sweep
	feeders  sync.WaitGroup // ticks, lines: they end with intake
	works    sync.WaitGroup // runs
	settling sync.WaitGroup // ends that the store hasn't heard of

	keys [64]sync.Mutex // a request with an Idempotency-Key holds one
	once sync.Once
	err  error // of Close

	mu      sync.Mutex // guards what follows
	running map[string]*hand
	lines   map[string]*line // by the job's name
	waiting map[string]int   // by the job's name: runs that wait for the lock
	ticks   context.CancelFunc
}

// ErrDraining: the instance takes nothing new.
var ErrDraining = errors.New("the instance is shutting down")

var errShutdown = errors.New("its instance was shut down")

// New returns a runner that has joined the others. The store must keep records.
func New(ctx context.Context, opts Options) (*Runner, error) {
	records, ok := opts.Store.(driver.Records)
	if !ok {
		return nil, driver.Unsupportedf("%s keeps no records, which the job runner stands on", opts.Store.Facts().Driver)
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Keys == nil {
		opts.Keys = func(lock string, _ uint64) string { return lock }
	}
	if opts.Tracers == nil {
		opts.Tracers = noop.NewTracerProvider()
	}
	opts.Who = cmp.Or(opts.Who, fmt.Sprintf("pid %d", os.Getpid()))
	client, err := dibs.New(opts.Store, &dibs.Options{Hooks: opts.Hooks, Logger: opts.Log})
	if err != nil {
		return nil, err
	}
	id := book.NewID()
	r := &Runner{
		id: id, opts: opts, client: client,
		book:    book.New(records, opts.Config.Store.Namespace, opts.Observer.Request),
		hub:     newHub(),
		log:     opts.Log.With("instance", id),
		tracer:  opts.Tracers.Tracer("github.com/dibslock/dibs/cmd/internal/runner"),
		running: make(map[string]*hand),
		lines:   make(map[string]*line),
		waiting: make(map[string]int),
	}
	r.config.Store(opts.Config)
	if err := r.checkLocks(opts.Config); err != nil {
		return nil, errors.Join(err, client.Close(ctx))
	}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	r.toil, r.halt = context.WithCancelCause(r.ctx)
	r.intake, r.drain = context.WithCancelCause(r.ctx)
	r.roster = newRoster(r)
	if err := r.join(ctx); err != nil {
		r.stop(err)
		return nil, errors.Join(err, client.Close(ctx))
	}
	r.loops.Go(func() { r.roster.run(r.ctx) })
	r.loops.Go(func() { r.sweep(r.ctx) })
	r.startTicks()
	return r, nil
}

// join says that this instance is there.
func (r *Runner) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := r.roster.beat(ctx); err != nil {
		return err
	}
	return r.book.Join(ctx, r.id)
}

// ID names the instance.
func (r *Runner) ID() string { return r.id }

// Config returns the configuration in force.
func (r *Runner) Config() *config.Config { return r.config.Load() }

// Client returns the client that holds the locks.
func (r *Runner) Client() *dibs.Client { return r.client }

// Book returns the records.
func (r *Runner) Book() *book.Book { return r.book }

// now is this instance's clock, which may be wrong: it decides when to look, and
// never what is true.
func (r *Runner) now() time.Time { return time.Now().Add(r.opts.ClockOffset) }

// Ready returns nil while the instance takes requests and its store answers.
func (r *Runner) Ready() error {
	if r.intake.Err() != nil {
		return ErrDraining
	}
	return r.roster.health()
}

// Reload puts a new configuration in force. Runs under way end as they began.
func (r *Runner) Reload(c *config.Config) error {
	old := r.Config()
	if c.Store != old.Store {
		return errors.New("the store can't be changed without a restart")
	}
	if c.Server.Listen != old.Server.Listen {
		return errors.New("server.listen can't be changed without a restart")
	}
	if err := r.checkLocks(c); err != nil {
		return err
	}
	r.config.Store(c)
	r.startTicks()
	r.log.Info("reloaded", "jobs", len(c.Jobs))
	return nil
}

// Drain stops taking requests and ticks, and lets running work end; what runs on
// when ctx ends is stopped. What is queued stays for the others.
func (r *Runner) Drain(ctx context.Context) {
	r.mu.Lock()
	already := r.intake.Err() != nil
	r.drain(ErrDraining)
	n := len(r.running)
	r.mu.Unlock()
	if !already {
		r.log.Info("draining", "running", n)
	}
	r.feeders.Wait()
	done := make(chan struct{})
	go func() { // ends when all runs have
		r.works.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		r.halt(errShutdown)
		<-done
	}
}

// Close drains at once if that wasn't done, gives everything back, and closes the
// store. ctx bounds how long it waits for the store. Closing twice is harmless.
func (r *Runner) Close(ctx context.Context) error {
	r.once.Do(func() { r.err = r.close(ctx) })
	return r.err
}

func (r *Runner) close(ctx context.Context) error {
	now, cancel := context.WithCancel(ctx)
	cancel()
	r.Drain(now)
	settled := make(chan struct{})
	go func() { // ends when every end is written, or with r.ctx
		r.settling.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
	r.stop(errShutdown)
	r.loops.Wait()
	<-settled
	err := r.leave(ctx)
	r.hub.close()
	return errors.Join(err, r.client.Close(ctx))
}

// leave tells the others that what is left is theirs.
func (r *Runner) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if r.roster.empty() {
		return r.book.Forget(ctx, r.id)
	}
	r.roster.leave()
	return r.roster.beat(ctx)
}
