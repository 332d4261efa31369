package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/executor"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/cmd/internal/terminal"
)

// hold does work under the lease, and gives it back when nothing of the work is
// left.
func (s *session) hold(lease *dibs.Lease, work func() error) error {
	s.failing, s.asked = false, false
	s.result.granted(lease, s.names)
	s.events.add(event{Event: "acquired", Fence: s.result.Fence, Token: s.result.Token, Waited: &s.result.Waited})
	defer func() {
		within := giveBackTime
		if s.failing {
			within = closeTime // the store is in trouble, or has nothing of ours
		}
		s.giveBack(lease, within)
	}()
	if err := s.trust(lease); err != nil {
		return err
	}
	return work()
}

// execute runs the command under the lease; nil: it holds nothing.
func (s *session) execute(lease *dibs.Lease) error {
	s.in.whole()
	select {
	case sig := <-s.in.signals:
		return (&signalError{sig}).failure(s.key)
	default:
	}
	limits, trust := s.stops(), trusted(lease)
	if lease == nil {
		limits.warnOnly, trust = true, untied{}
	}
	tty := terminal.Open()
	defer tty.Close()
	lend := tty.Job()
	p, err := s.start(lease, limits, tty, lend)
	if err != nil {
		return err
	}
	defer p.Close()
	v := &supervisor{
		process: p,
		lease:   trust,
		key:     s.key,
		limits:  limits,
		signals: s.in.signals,
		trouble: s.watch.trouble,
		renewed: s.watch.renewed,
		parent:  s.parent,
		job:     newJob(tty, p.Pid(), lend, s.in.signals),
		events:  s.events,
		stderr:  s.stderr,
		log:     s.log,
	}
	err = v.run()
	s.result.ran(v)
	s.failing, s.asked = v.lost != nil, v.asked()
	return err
}

// untied is the trust of a command that holds nothing: nothing can be lost.
type untied struct{}

func (untied) Check() error             { return nil }
func (untied) Remaining() time.Duration { return time.Hour }
func (untied) Context() context.Context { return context.Background() }

func (r *runner) stops() stops {
	return stops{
		grace:     r.grace.Duration,
		margin:    executor.Margin(r.ttl.Duration),
		timeout:   r.timeout.Duration,
		killAfter: r.killAfter.Duration,
		escalate:  r.killAfter.given,
		warnOnly:  r.onLost.value == "warn",
	}
}

// A living store sees a death as soon as nobody has a file of its client open any
// more: see LifeFile of sqlitelock.Store, and of pglock.Advisory, where it is the
// connection. A store that is none frees a dead holder's key by its TTL.
type living interface{ LifeFile() (*os.File, error) }

// start starts the command, and lends it the terminal.
func (s *session) start(lease *dibs.Lease, limits stops, tty *terminal.Terminal, lend bool) (*guard.Process, error) {
	spec := guard.Spec{Path: s.path, Argv: s.argv, Env: os.Environ(), Foreground: lend}
	if lease != nil {
		spec.Env = s.childEnv(spec.Env, lease.Fences())
	}
	if !limits.warnOnly {
		spec.Limit = limits.guard(lease.Remaining())
	}
	if l, ok := s.store.(living); ok && lease != nil {
		var err error
		if spec.Life, err = l.LifeFile(); err != nil {
			return nil, failf(exitFailed, "%v; the command was not started", err)
		}
	}
	tty.Keep()
	p, err := guard.Start(spec)
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		tty.Reclaim()
		return nil, failf(exitNotExecutable, "can't execute %s: %v%s", s.path, errno, scriptHint(err))
	}
	if err != nil {
		tty.Reclaim()
		return nil, failf(exitFailed, "can't start %s: %v", s.path, err)
	}
	s.result.started = time.Now()
	s.events.add(event{Event: "started", Pid: p.Pid()})
	s.log.Debug("started", "key", s.key, "pid", p.Pid(), "run_id", s.runID)
	return p, nil
}

// giveBackTime bounds how long a healthy store has for the release: what waits
// for it is not the command any more, but the next in line.
const giveBackTime = 5 * time.Second

// trust makes sure that the command can start under the lease.
func (r *runner) trust(lease *dibs.Lease) error {
	err := executor.Trust(context.Background(), lease, r.grace.Duration, r.ttl.Duration, func(err error) {
		r.log.Warn("not renewed yet", "key", r.key, "err", err)
	})
	if err != nil {
		return failf(exitLost, "%v; the command was not started", err)
	}
	return nil
}

// giveBack releases the lease. That it can't be confirmed doesn't change how the
// command ended.
func (r *runner) giveBack(lease *dibs.Lease, within time.Duration) {
	lost := lease.Check() != nil
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := lease.Release(ctx)
	confirmed := err == nil
	r.events.add(event{Event: "released", Confirmed: &confirmed})
	switch {
	case err == nil || lost:
		return
	case errors.Is(err, dibs.ErrNotHeld): // a clear answer: nothing is left that could end
		say(r.stderr, "warning: the lock on %s was lost before it was given back, while the command may still have run: %v", quote(r.key), err)
		return
	}
	say(r.stderr, "warning: giving back %s was not confirmed by the store %s: %v\nit ends by itself within %s", quote(r.key), r.place, err, short(r.ttl.Duration))
}
