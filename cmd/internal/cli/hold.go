package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/cmd/internal/terminal"
	"github.com/dibslock/dibs/driver"
)

// hold runs the command under the lease, and gives the lease back when nothing
// of the command is left.
func (r *runner) hold(in *inbox, store driver.Store, lease *dibs.Lease, watch *watch) error {
	r.result.granted(lease)
	r.events.add(event{Event: "acquired", Fence: r.result.Fence, Token: r.result.Token, Waited: &r.result.Waited})
	within := giveBackTime
	defer func() { r.giveBack(lease, within) }()
	if err := r.trust(lease); err != nil {
		return err
	}
	in.whole()
	select {
	case sig := <-in.signals:
		return (&signalError{sig}).failure(r.key)
	default:
	}
	limits := r.stops()
	tty := terminal.Open()
	defer tty.Close()
	lend := tty.Job()
	p, err := r.start(store, lease, limits, tty, lend)
	if err != nil {
		return err
	}
	defer p.Close()
	s := &supervisor{
		process: p,
		lease:   lease,
		key:     r.key,
		limits:  limits,
		signals: in.signals,
		trouble: watch.trouble,
		renewed: watch.renewed,
		parent:  r.parent,
		job:     newJob(tty, p.Pid(), lend, in.signals),
		events:  r.events,
		stderr:  r.stderr,
		log:     r.log,
	}
	err = s.run()
	r.result.ran(s)
	if s.lost != nil {
		within = closeTime // the store is in trouble, or has nothing of ours
	}
	return err
}

func (r *runner) stops() stops {
	return stops{
		grace:     r.grace.Duration,
		margin:    margin(r.ttl.Duration),
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
func (r *runner) start(store driver.Store, lease *dibs.Lease, limits stops, tty *terminal.Terminal, lend bool) (*guard.Process, error) {
	spec := guard.Spec{
		Path: r.path, Argv: r.argv, Env: r.childEnv(os.Environ(), lease.Fence()),
		Foreground: lend,
	}
	if !limits.warnOnly {
		spec.Limit = limits.guard(lease.Remaining())
	}
	if s, ok := store.(living); ok {
		var err error
		if spec.Life, err = s.LifeFile(); err != nil {
			return nil, failf(exitFailed, "%v; the command was not started", err)
		}
	}
	tty.Keep()
	p, err := guard.Start(spec)
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		tty.Reclaim()
		return nil, failf(exitNotExecutable, "can't execute %s: %v%s", r.path, errno, scriptHint(err))
	}
	if err != nil {
		tty.Reclaim()
		return nil, failf(exitFailed, "can't start %s: %v", r.path, err)
	}
	r.result.started = time.Now()
	r.events.add(event{Event: "started", Pid: p.Pid()})
	r.log.Debug("started", "key", r.key, "pid", p.Pid(), "run_id", r.runID)
	return p, nil
}

// giveBackTime bounds how long a healthy store has for the release: what waits
// for it is not the command any more, but the next in line.
const giveBackTime = 5 * time.Second

// margin is how much of the trust is left for KILL to do its work, and for the
// scheduler to let us send it.
func margin(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 20*time.Millisecond), time.Second)
}

// trust makes sure that the lease has enough trust left for the command to be
// stopped in: one that was handed over lives for the hand-over alone, until it
// is renewed.
func (r *runner) trust(lease *dibs.Lease) error {
	need := r.grace.Duration + 2*margin(r.ttl.Duration)
	for {
		left := lease.Remaining()
		if left > need {
			return nil
		}
		if err := lease.Check(); err != nil {
			return failf(exitLost, "%v; the command was not started", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), left)
		err := lease.Validate(ctx)
		cancel()
		switch {
		case errors.Is(err, dibs.ErrLost):
			return failf(exitLost, "%v; the command was not started", err)
		case err != nil:
			r.log.Warn("not renewed yet", "key", r.key, "err", err)
			time.Sleep(min(left, 20*time.Millisecond)) // the store has just failed: don't press it
		}
	}
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
	if err == nil || lost {
		return
	}
	say(r.stderr, "warning: giving back %s was not confirmed by the store %s: %v\nit ends by itself within %s", quote(r.key), r.place, err, short(r.ttl.Duration))
}
