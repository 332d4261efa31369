package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/executor"
	"github.com/dibslock/dibs/driver"
)

// A hand is a run that this instance has in hand.
type hand struct {
	cancel context.CancelCauseFunc
}

// A cancelError says who cancelled a run.
type cancelError struct{ by string }

func (e *cancelError) Error() string { return "cancelled by " + e.by }

// final tells that repeating doesn't help.
func final(err error) bool {
	return errors.Is(err, book.ErrTaken) || errors.Is(err, book.ErrNone) || errors.Is(err, driver.ErrFenced) ||
		errors.Is(err, driver.ErrRejected) || errors.Is(err, driver.ErrClosed)
}

// take puts a run into this instance's hands; ctx ends when it is to be stopped.
func (r *Runner) take(id string) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.toil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[id] = &hand{cancel}
	return ctx, func() {
		r.mu.Lock()
		delete(r.running, id)
		r.mu.Unlock()
		cancel(nil)
	}
}

// work does a run that was accepted and has its lock, in a goroutine of its own.
// The caller has entered.
func (r *Runner) work(target config.Target, run book.Run, lease *dibs.Lease) {
	r.works.Go(func() { r.toilOn(target, run, lease) }) // ends with the work
}

// toilOn does a run and returns when it has ended and the lock is given back.
func (r *Runner) toilOn(target config.Target, run book.Run, lease *dibs.Lease) {
	ctx, done := r.take(run.ID)
	defer done()
	ctx, span := r.begins(ctx, run)
	run.Trace = traceparent(ctx, run.Trace) // the work's own spans are below this one
	log := r.log.With("job", run.Job, "run", run.ID)
	log.Info("started", "lock", run.Lock, "fence", run.Fence, "attempt", run.Attempt, "trigger", run.Trigger)
	out := r.newOutput(run, int(target.History.LogBytes))
	var result executor.Result
	for {
		result = r.attempt(ctx, target, run, lease, out)
		if !r.again(target, run, result) {
			break
		}
		pause := target.Retries.Pause(run.Attempt)
		log.Info("retrying", "attempt", run.Attempt, "reason", result.Reason, "pause", pause)
		repeats(span, run, result)
		if stopped := r.between(ctx, &run, lease, result, pause); stopped != nil {
			result = *stopped
			break
		}
	}
	out.close()
	r.settle(target, run, lease, result)
	ends(span, run, stateOf(r.toil, result), result.Reason)
}

// attempt does the work once.
func (r *Runner) attempt(ctx context.Context, target config.Target, run book.Run, lease *dibs.Lease, out *output) executor.Result {
	if err := trust(ctx, lease, target.Job); err != nil {
		return executor.Result{End: executor.Lost, Reason: err.Error()}
	}
	work, err := r.workOf(target, run)
	if err != nil {
		return executor.Result{End: executor.Broken, Reason: err.Error()}
	}
	return work.Run(ctx, lease, limits(target.Job), out.tail)
}

// again tells whether there is another attempt after result. A loss isn't followed
// by one under the same lock: see settle.
func (r *Runner) again(target config.Target, run book.Run, result executor.Result) bool {
	failed := result.End == executor.Timeout || result.End == executor.Broken || result.End == executor.Done && !result.OK
	return failed && target.Retries != nil && run.Attempt <= target.Retries.Max
}

// between waits for the next attempt. A result says that there is none.
func (r *Runner) between(ctx context.Context, run *book.Run, lease *dibs.Lease, result executor.Result, pause time.Duration) *executor.Result {
	tell := func(state book.State, attempt int) {
		c, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		changed, err := r.change(c, *run, func(x *book.Run) { x.State, x.Attempt, x.Reason = state, attempt, result.Reason })
		if err != nil {
			r.log.Warn("the run's state was not written", "run", run.ID, "err", err)
			return
		}
		r.hub.run(changed)
	}
	tell(book.Waiting, run.Attempt)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return &executor.Result{End: executor.Stopped, Reason: context.Cause(ctx).Error()}
	case <-lease.Context().Done():
		return &executor.Result{End: executor.Lost, Reason: context.Cause(lease.Context()).Error()}
	}
	run.Attempt++
	result.Reason = ""
	tell(book.Running, run.Attempt)
	return nil
}

// change changes a run that this instance has in hand, under its token.
func (r *Runner) change(ctx context.Context, run book.Run, f func(x *book.Run)) (book.Run, error) {
	return r.book.ChangeUnder(ctx, run.ID, run.Lock, run.Token, func(x *book.Run) error {
		if x.Instance != r.id || x.Token != run.Token || x.State.Ended() {
			return book.ErrTaken
		}
		f(x)
		return nil
	})
}

// stateOf is what a run with that result ends as.
func stateOf(ctx context.Context, result executor.Result) book.State {
	switch {
	case result.OK:
		return book.Succeeded
	case result.End == executor.Timeout:
		return book.Timeout
	case result.End == executor.Lost:
		return book.Lost
	case result.End == executor.Stopped:
		if errors.Is(context.Cause(ctx), errShutdown) {
			return book.Lost
		}
		return book.Cancelled
	}
	return book.Failed
}

// settle writes how the run ended, and gives the lock back. The lock goes last: a
// next run must not seem to begin before this one ended. If the store doesn't
// answer, the lock isn't held for it, and the end is written when it does.
func (r *Runner) settle(target config.Target, run book.Run, lease *dibs.Lease, result executor.Result) {
	ended := time.Now().UTC()
	state := stateOf(r.toil, result)
	retry := state == book.Lost && retriable(target, run) && !revoked(lease)
	next := book.NewID()
	write := func(ctx context.Context) (book.Run, error) {
		return r.book.ChangeUnder(ctx, run.ID, run.Lock, run.Token, func(x *book.Run) error {
			if x.Ended != nil && x.Ended.Equal(ended) && x.Instance == r.id {
				return nil // written, and the answer was lost
			}
			if x.Instance != r.id || x.Token != run.Token || x.State.Ended() {
				return book.ErrTaken
			}
			x.State, x.Reason, x.Ended, x.Attempt = state, result.Reason, &ended, run.Attempt
			x.Status = result.Status
			if target.HTTP == nil && result.End != executor.Broken {
				x.Exit = &result.Code
			}
			if retry {
				x.RetriedAs = next
			}
			return nil
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	last, err := write(ctx)
	cancel()
	r.giveBack(lease)
	if err == nil || final(err) {
		r.ended(target, run, last, result, ended, err)
		return
	}
	r.log.Warn("the store doesn't hear how the run ended; trying on", "run", run.ID, "err", err)
	r.settling.Go(func() { // ends when the store has answered, or with the runner
		err := r.insist(func(ctx context.Context) (err error) {
			last, err = write(ctx)
			return err
		})
		r.ended(target, run, last, result, ended, err)
	})
}

// ended is told when the end of a run is known to all.
func (r *Runner) ended(target config.Target, run, last book.Run, result executor.Result, at time.Time, err error) {
	log := r.log.With("job", run.Job, "run", run.ID)
	if err != nil && !final(err) {
		log.Error("the store never heard how the run ended; the others will find it", "reason", result.Reason, "err", err)
		return // in this instance's hands until the others take it over
	}
	if err != nil {
		last = run
		last.State = book.Lost
		log.Warn("another instance has taken the run over", "err", err)
	}
	took := at.Sub(*run.Started)
	log.Info("completion", "state", last.State, "took", took, "reason", result.Reason, "attempt", run.Attempt, "fence", run.Fence)
	if f := r.opts.Observer.Ended; f != nil {
		f(target.ID, last.State, took)
	}
	if err == nil {
		r.hub.run(last)
		if last.RetriedAs != "" {
			if err := r.insist(func(ctx context.Context) error { return r.retry(ctx, last) }); err != nil {
				log.Error("the retry was not queued", "err", err)
				return
			}
		}
	}
	r.roster.remove(run.ID)
}

func (r *Runner) giveBack(lease *dibs.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if err := lease.Release(ctx); err != nil && !errors.Is(err, dibs.ErrLost) && !errors.Is(err, dibs.ErrNotHeld) {
		r.log.Warn("giving back the lock was not confirmed; it ends by its TTL", "lock", lease.Name(), "err", err)
	}
}

func retriable(target config.Target, run book.Run) bool {
	return target.Retries != nil && run.Attempt <= target.Retries.Max
}

// revoked tells whether an operator took the lock away: that is no accident.
func revoked(lease *dibs.Lease) bool {
	var lost *dibs.LostError
	return errors.As(lease.Check(), &lost) && lost.Reason == dibs.RevokedAway
}

// workOf is what a run of a target does.
func (r *Runner) workOf(target config.Target, run book.Run) (executor.Work, error) {
	at := run.Created
	if run.Tick != nil {
		at = *run.Tick
	}
	o := config.Occasion{
		JobID: run.Job, RunID: run.ID, Trigger: run.Trigger, ScheduledAt: at.In(target.Location),
		Params: run.Params, Fence: run.Fence, Attempt: run.Attempt,
	}
	if target.HTTP != nil {
		return r.request(target, run, o)
	}
	argv, err := target.Argv(o)
	if err != nil {
		return nil, err
	}
	life, err := r.life()
	if err != nil {
		return nil, fmt.Errorf("the store's life file: %w", err)
	}
	return executor.Command{Argv: argv, Env: r.environment(target, run), Life: life}, nil
}
