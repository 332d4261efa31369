package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
)

var errWaited = errors.New("the wait is over")

// await is on_conflict: wait. The run waits in the lock's own line, which is the
// store's and first come, first served; the wait is this instance's, and ends
// with it.
func (r *Runner) await(ctx context.Context, target config.Target, q Request) (Accepted, error) {
	if !r.seat(target) {
		return Accepted{}, &book.FullError{Job: target.Name, Max: target.Wait.Max}
	}
	quota, err := r.limit(ctx, target)
	if err != nil {
		r.stand(target)
		return Accepted{}, err
	}
	run := r.newRun(target, q, book.Waiting)
	first, err := r.accept(ctx, target, q, run)
	if err != nil || first.Replayed {
		r.stand(target)
		return first, err
	}
	r.works.Go(func() { // ends with the wait, and then with the work
		lease := r.waitFor(target, &run)
		r.stand(target)
		if lease != nil {
			r.hub.run(run)
			r.toilOn(target, run, lease)
		}
	})
	return Accepted{Run: run, Quota: quota}, nil
}

// seat takes one of the job's places to wait in.
func (r *Runner) seat(target config.Target) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[target.Name] >= target.Wait.Max {
		return false
	}
	r.waiting[target.Name]++
	return true
}

func (r *Runner) stand(target config.Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[target.Name]--; r.waiting[target.Name] == 0 {
		delete(r.waiting, target.Name)
	}
}

// waitFor returns the lease under which run now runs; nil if it is over instead.
func (r *Runner) waitFor(target config.Target, run *book.Run) *dibs.Lease {
	ctx, done := r.take(run.ID)
	defer done()
	ctx = under(ctx, run.Trace)
	ctx, stop := context.WithTimeoutCause(ctx, target.Wait.For.Duration, errWaited)
	defer stop()
	defer context.AfterFunc(r.intake, stop)()
	locker := r.locker(target, "job "+run.Job+", run "+run.ID)
	lease, err := locker.Lock(ctx)
	for err == nil && trust(ctx, lease, target.Job) != nil && ctx.Err() == nil {
		r.forgo(lease) // handed over, and lapsed before it could be renewed
		lease, err = locker.Lock(ctx)
	}
	if err != nil {
		r.unstarted(target, *run, r.whyNot(ctx, err))
		return nil
	}
	r.roster.change(book.Active{Run: run.ID, Job: run.Job, Lock: target.Locked, Token: lease.Token()})
	if err = r.roster.sync(ctx); err == nil {
		var started book.Run
		if started, err = r.claim(ctx, run.ID, target, lease); err == nil {
			*run = started
			return lease
		}
	}
	r.forgo(lease)
	r.unstarted(target, *run, r.whyNot(ctx, err))
	return nil
}

// A miss is why a run that waited didn't begin.
type miss struct {
	state          book.State
	reason, holder string
}

func (r *Runner) whyNot(ctx context.Context, err error) miss {
	var held *dibs.HeldError
	errors.As(err, &held)
	cause := context.Cause(ctx)
	var cancelled *cancelError
	switch {
	case errors.As(cause, &cancelled):
		return miss{book.Cancelled, cause.Error(), ""}
	case r.intake.Err() != nil:
		return miss{book.Cancelled, errShutdown.Error() + " while it waited", ""}
	case errors.Is(cause, errWaited) && held != nil:
		return miss{book.Skipped, "held", holderOf(held)}
	}
	return miss{book.Failed, fmt.Sprintf("the lock was not to be had: %v", err), ""}
}

// unstarted writes the end of a run that never began.
func (r *Runner) unstarted(target config.Target, run book.Run, m miss) {
	now := time.Now().UTC()
	r.settling.Go(func() { // ends when the store has answered, or with the runner
		var last book.Run
		err := r.insist(func(ctx context.Context) (err error) {
			last, err = r.book.Change(ctx, run.ID, func(x *book.Run) error {
				if x.State.Ended() {
					return nil
				}
				x.State, x.Reason, x.Holder, x.Ended = m.state, m.reason, m.holder, &now
				return nil
			})
			return err
		})
		if err != nil && !final(err) {
			return
		}
		r.log.Info("completion", "job", run.Job, "run", run.ID, "state", m.state, "reason", m.reason, "holder", m.holder)
		if m.state == book.Skipped && r.opts.Observer.Skipped != nil {
			r.opts.Observer.Skipped(target.ID, m.reason)
		}
		r.roster.remove(run.ID)
		r.hub.run(last)
	})
}
