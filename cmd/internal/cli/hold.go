package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/child"
)

// hold runs the command under the lease, and gives the lease back when nothing
// of the command is left.
func (r *runner) hold(in *inbox, lease *dibs.Lease, watch *watch) error {
	within := giveBackTime
	defer func() { r.giveBack(lease, within) }()
	if err := r.trust(lease); err != nil {
		return err
	}
	runID, err := uuid.NewV7()
	if err != nil {
		return failf(exitFailed, "can't make a run id: %v; the command was not started", err)
	}
	in.whole()
	select {
	case sig := <-in.signals:
		return (&signalError{sig}).failure(r.key)
	default:
	}
	p, err := child.Start(r.path, r.argv, r.childEnv(os.Environ(), lease.Fence(), runID))
	if err != nil {
		return failf(exitNotExecutable, "can't execute %s: %v%s", r.path, errors.Unwrap(err), scriptHint(err))
	}
	r.log.Debug("started", "key", r.key, "pid", p.Pid(), "run_id", runID)
	s := &supervisor{
		process: p,
		lease:   lease,
		key:     r.key,
		limits: stops{
			grace:     r.grace.Duration,
			margin:    margin(r.ttl.Duration),
			timeout:   r.timeout.Duration,
			killAfter: r.killAfter.Duration,
			escalate:  r.killAfter.given,
			warnOnly:  r.onLost.value == "warn",
		},
		signals: in.signals,
		trouble: watch.trouble,
		stderr:  r.stderr,
		log:     r.log,
	}
	err = s.run()
	if s.lost != nil {
		within = closeTime // the store is in trouble, or has nothing of ours
	}
	return err
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
	if err == nil || lost {
		return
	}
	say(r.stderr, "warning: giving back %s was not confirmed by the store %s: %v\nit ends by itself within %s", quote(r.key), r.place, err, short(r.ttl.Duration))
}
