package runner

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
)

// settleTime bounds what is done for the store when no caller waits for it.
const settleTime = 5 * time.Second

// Trigger asks for a run. A nil error says that the run is accepted; it may be
// over by then. ctx bounds the asking, not the run.
func (r *Runner) Trigger(ctx context.Context, q Request) (Accepted, error) {
	target, ok := r.Config().Find(q.Job)
	if !ok {
		return Accepted{}, fmt.Errorf("%q: %w", q.Job, ErrNoJob)
	}
	log := r.log.With("job", q.Job, "trigger", q.Trigger)
	log.Info("attempt", "by", q.By, "lock", target.Locked)
	ctx, span := r.asks(ctx, q, target.Locked)
	q.Trace = traceparent(ctx, q.Trace)
	a, err := r.gate(ctx, target, q)
	var busy *BusyError
	reason := reasonOf(err)
	asked(span, a, reason, err)
	switch {
	case err == nil && a.Replayed:
		log.Info("replayed", "run", a.Run.ID)
	case err == nil:
		log.Info("accepted", "run", a.Run.ID, "state", a.Run.State, "position", a.Position)
	case errors.As(err, &busy):
		log.Info("contention", "lock", target.Locked, "holder", holderOf(busy.HeldError), "retry_after", busy.RetryAfter)
	case reason != "":
		log.Info("refused", "reason", reason, "err", err)
	default:
		log.Warn("not accepted", "err", err)
	}
	if reason != "" && r.opts.Observer.Skipped != nil {
		r.opts.Observer.Skipped(target.ID, reason)
	}
	if reason == "rate-limited" && r.opts.Observer.Limited != nil {
		r.opts.Observer.Limited(target.ID)
	}
	return a, err
}

func holderOf(e *dibs.HeldError) string {
	if e == nil || e.Holder == nil {
		return ""
	}
	return e.Holder.Note
}

// gate is the one way in.
func (r *Runner) gate(ctx context.Context, target config.Target, q Request) (Accepted, error) {
	if !r.enter() {
		return Accepted{}, ErrDraining
	}
	defer r.works.Done()
	target, err := target.With(q.Params)
	if err != nil {
		return Accepted{}, &ParamError{err}
	}
	job, _, err := r.book.Job(ctx, target.Name)
	if err != nil {
		return Accepted{}, err
	}
	if job.Paused != nil {
		return Accepted{}, &PausedError{target.Name, *job.Paused}
	}
	if q.Key != "" {
		// Two requests with one key to one instance: the second sees the first.
		h := fnv.New32a()
		_, _ = h.Write([]byte(target.Name + "\x00" + q.Key))
		mu := &r.keys[h.Sum32()%uint32(len(r.keys))]
		mu.Lock()
		defer mu.Unlock()
		if a, err := r.replay(ctx, target, q); a.Replayed || err != nil {
			return a, err
		}
	}
	if !r.room() {
		return Accepted{}, ErrCrowded
	}
	switch target.OnConflict {
	case "queue":
		return r.enqueue(ctx, target, q)
	case "wait":
		return r.await(ctx, target, q)
	}
	return r.start(ctx, target, q)
}

// enter keeps the runner from ending while something is begun.
func (r *Runner) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.intake.Err() != nil {
		return false
	}
	r.works.Add(1)
	return true
}

// room tells whether this instance may take one more run in hand. It is near
// enough: those that are being taken aren't counted.
func (r *Runner) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)+len(r.lines) < r.Config().Server.MaxRuns
}

// inHand is how many runs this instance has.
func (r *Runner) inHand() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

// replay looks for what the key started.
func (r *Runner) replay(ctx context.Context, target config.Target, q Request) (Accepted, error) {
	k, err := r.book.Key(ctx, target.Name, q.Key)
	switch {
	case errors.Is(err, book.ErrNone):
		return Accepted{}, nil
	case err != nil:
		return Accepted{}, err
	case k.Request != q.Hash:
		return Accepted{}, ErrKeyReused
	}
	run, err := r.book.Run(ctx, k.Run)
	if errors.Is(err, book.ErrNone) { // it is history, and that is short
		run, err = book.Run{ID: k.Run, Job: target.Name}, nil
	}
	return Accepted{Run: run, Replayed: true}, err
}

// limit takes one of the job's rate limit.
func (r *Runner) limit(ctx context.Context, target config.Target) (*dibs.Quota, error) {
	if target.RateLimit == nil {
		return nil, nil
	}
	name := "serve/" + r.Config().Store.Namespace + "/" + target.Name
	quota, err := r.client.Limit(name, target.RateLimit.Runs, target.RateLimit.Per.Duration).Take(ctx)
	var limited *dibs.LimitedError
	if errors.As(err, &limited) {
		return nil, &LimitError{target.Name, *target.RateLimit, limited}
	}
	return &quota, err
}

// newRun is a run as it is accepted.
func (r *Runner) newRun(target config.Target, q Request, state book.State) book.Run {
	run := book.Run{
		ID: q.RunID, Job: target.Name, State: state, Trigger: q.Trigger, By: q.By,
		Params: target.Params, Created: time.Now().UTC(), Attempt: 1,
		Lock: target.Locked, Instance: r.id, Trace: q.Trace, Keep: target.History.Keep.Duration,
	}
	if run.ID == "" {
		run.ID = book.NewID()
	}
	if run.Trace == "" {
		run.Trace = newTrace()
	}
	if !q.Tick.IsZero() {
		tick := q.Tick.UTC()
		run.Tick = &tick
	}
	return run
}

// start is on_conflict: skip: the lock now, or not at all.
func (r *Runner) start(ctx context.Context, target config.Target, q Request) (Accepted, error) {
	run := r.newRun(target, q, book.Running)
	lease, err := r.locker(target, "job "+target.Name+", run "+run.ID).TryLock(ctx)
	if err != nil {
		var held *dibs.HeldError
		if !errors.As(err, &held) {
			return Accepted{}, err
		}
		if q.Key != "" { // the holder may have begun with this key
			if a, err := r.replay(ctx, target, q); a.Replayed || err != nil {
				return a, err
			}
		}
		return Accepted{}, &BusyError{target.Name, held}
	}
	quota, err := r.limit(ctx, target)
	if err != nil {
		r.forgo(lease)
		return Accepted{}, err
	}
	now := run.Created
	run.Started, run.Token, run.Fence = &now, lease.Token(), lease.Fence()
	first, err := r.accept(ctx, target, q, run)
	if err != nil || first.Replayed {
		r.forgo(lease)
		return first, err
	}
	r.work(target, run, lease)
	return Accepted{Run: run, Quota: quota}, nil
}

// forgo gives back a lease under which nothing was done.
func (r *Runner) forgo(lease *dibs.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if err := lease.Forgo(ctx); err != nil && !errors.Is(err, dibs.ErrNotHeld) {
		r.log.Warn("the lock was not given back and ends by its TTL", "lock", lease.Name(), "err", err)
	}
}

// accept writes the run, so that from then on it can be found, whatever becomes
// of this instance. If another request with the same key was quicker, that one's
// run is returned, as replayed.
func (r *Runner) accept(ctx context.Context, target config.Target, q Request, run book.Run) (Accepted, error) {
	if err := r.roster.add(ctx, book.Active{Run: run.ID, Job: run.Job, Lock: run.Lock, Token: run.Token}); err != nil {
		r.roster.remove(run.ID)
		return Accepted{}, err
	}
	undo := func() { r.abandon(run) }
	if err := r.book.Add(ctx, run); err != nil {
		undo()
		return Accepted{}, err
	}
	if q.Key != "" {
		mine := book.Key{Run: run.ID, Request: q.Hash}
		first, err := r.book.Use(ctx, target.Name, q.Key, mine, target.Idempotency.TTL.Duration)
		switch {
		case err != nil:
			undo()
			return Accepted{}, err
		case first != mine:
			undo()
			return r.replay(ctx, target, q)
		}
	}
	r.note(ctx, target, run)
	r.hub.run(run)
	return Accepted{}, nil
}

// note puts the run among those of its job, and forgets those that are too many.
func (r *Runner) note(ctx context.Context, target config.Target, run book.Run) {
	old, err := r.book.Note(ctx, run, target.History.MaxRuns)
	for _, id := range old {
		err = errors.Join(err, r.book.Remove(ctx, id))
	}
	if err != nil {
		r.log.Warn("the job's history was not updated", "job", run.Job, "run", run.ID, "err", err)
	}
}

// abandon takes back a run that may have been written and was not accepted. Until
// that is certain it stays in this instance's hands, so that the others find it if
// this one dies.
func (r *Runner) abandon(run book.Run) {
	r.settling.Go(func() { // ends when the store has answered, or with the runner
		err := r.insist(func(ctx context.Context) error { return r.book.Remove(ctx, run.ID) })
		if err == nil {
			r.roster.remove(run.ID)
		}
	})
}

// insist repeats f until it succeeds or is certain that it can't, or the runner
// ends.
func (r *Runner) insist(f func(ctx context.Context) error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		ctx, cancel := context.WithTimeout(r.ctx, settleTime)
		err := f(ctx)
		cancel()
		if err == nil || final(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return err
		}
	}
}
