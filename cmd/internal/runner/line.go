package runner

import (
	"context"
	"errors"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
)

// A line is this instance at work on a job's queue. Any number of instances may
// be: the lock says whose turn it is, the queue which run's.
type line struct {
	holds int  // by those who are about to queue a run
	more  bool // something was queued since it looked
}

// hold makes sure that this instance works on the queue of job, and that the
// others know, before anything is queued that they would have to find.
func (r *Runner) hold(ctx context.Context, job string) (release func(), err error) {
	r.mu.Lock()
	l := r.lines[job]
	if l == nil {
		l = &line{}
		r.lines[job] = l
		if r.intake.Err() == nil {
			r.feeders.Go(func() { r.pump(job, l) }) // ends with the queue, or with intake
		}
	}
	l.holds++
	r.mu.Unlock()
	release = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		l.holds--
		l.more = true
	}
	r.roster.touch()
	if err := r.roster.sync(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// queues are the jobs whose queues this instance works on.
func (r *Runner) queues() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var jobs []string
	for job := range r.lines {
		jobs = append(jobs, job)
	}
	return jobs
}

// enqueue is on_conflict: queue. The run is the store's from then on.
func (r *Runner) enqueue(ctx context.Context, target config.Target, q Request) (Accepted, error) {
	waiting, err := r.book.Queue(ctx, target.Name)
	if err != nil {
		return Accepted{}, err
	}
	if len(waiting) >= target.Queue.Max {
		return Accepted{}, &book.FullError{Job: target.Name, Max: target.Queue.Max}
	}
	quota, err := r.limit(ctx, target)
	if err != nil {
		return Accepted{}, err
	}
	release, err := r.hold(ctx, target.Name)
	if err != nil {
		return Accepted{}, err
	}
	defer release()
	run := r.newRun(target, q, book.Queued)
	first, err := r.accept(ctx, target, q, run)
	if err != nil || first.Replayed {
		return first, err
	}
	position, err := r.book.Enqueue(ctx, run, target.Queue.Max)
	if err != nil {
		r.abandon(run)
		if q.Key != "" {
			r.settling.Go(func() { // ends when the store has answered, or with the runner
				_ = r.insist(func(ctx context.Context) error {
					return r.book.Unuse(ctx, target.Name, q.Key, book.Key{Run: run.ID, Request: q.Hash})
				})
			})
		}
		return Accepted{}, err
	}
	r.roster.remove(run.ID) // the queue has it
	return Accepted{Run: run, Position: position, Quota: quota}, nil
}

// pump works on the queue of job until it is empty.
func (r *Runner) pump(job string, l *line) {
	for r.intake.Err() == nil {
		empty, err := r.next(r.intake, job)
		switch {
		case err != nil && r.intake.Err() == nil:
			r.log.Warn("the queue waits", "job", job, "err", err)
			r.rest(time.Second)
		case empty && r.drained(job, l):
			r.roster.touch()
			return
		case empty:
			r.rest(20 * time.Millisecond) // something is about to be queued
		}
	}
}

// drained ends the line if nobody is about to queue anything.
func (r *Runner) drained(job string, l *line) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.holds > 0 || l.more {
		l.more = false
		return false
	}
	delete(r.lines, job)
	return true
}

// rest waits, but not for the end of intake.
func (r *Runner) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.intake.Done():
	}
}

var errUnknownJob = errors.New("the configuration has no such job any more")

// next starts the first run of the queue when it is its turn.
func (r *Runner) next(ctx context.Context, job string) (empty bool, err error) {
	target, ok := r.Config().Find(job)
	if !ok {
		return false, errUnknownJob
	}
	ids, err := r.book.Queue(ctx, job)
	if err != nil || len(ids) == 0 {
		return err == nil, err
	}
	state, _, err := r.book.Job(ctx, job)
	if err != nil {
		return false, err
	}
	if state.Paused != nil || r.inHand() >= r.Config().Server.MaxRuns { // what was accepted waits
		r.rest(time.Second)
		return false, nil
	}
	lease, err := r.locker(target, "job "+job+", from the queue").Lock(ctx)
	if err != nil {
		return false, err
	}
	if err := trust(ctx, lease, target.Job); err != nil || !r.enter() {
		r.forgo(lease)
		return false, err
	}
	defer r.works.Done()
	run, err := r.head(ctx, target, lease)
	if err != nil || run == nil {
		r.forgo(lease)
		return false, err
	}
	r.hub.run(*run)
	// A job that runs several at once has its next one started beside this.
	r.work(target, *run, lease)
	return false, nil
}

// head takes the first run that still waits, under lease. It is taken from the
// queue only when its record says that it runs: a death between the two leaves a
// run that the others find in this instance's hands.
func (r *Runner) head(ctx context.Context, target config.Target, lease *dibs.Lease) (*book.Run, error) {
	ids, err := r.book.Queue(ctx, target.Name)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		active := book.Active{Run: id, Job: target.Name, Lock: target.Locked, Token: lease.Token()}
		if err := r.roster.add(ctx, active); err != nil {
			r.roster.remove(id)
			return nil, err
		}
		run, err := r.claim(ctx, id, target, lease)
		switch {
		case err == nil:
			if err := r.book.Dequeue(ctx, target.Name, ids[:i+1]...); err != nil {
				r.log.Warn("the queue was not shortened; the run isn't begun twice", "job", target.Name, "run", id, "err", err)
			}
			return &run, nil
		case final(err): // cancelled, or another's
			r.roster.remove(id)
			if err := r.book.Dequeue(ctx, target.Name, id); err != nil {
				return nil, err
			}
		default:
			r.unclaim(id, lease.Token())
			return nil, err
		}
	}
	return nil, nil
}

// claim makes a run that waits one that runs here.
func (r *Runner) claim(ctx context.Context, id string, target config.Target, lease *dibs.Lease) (book.Run, error) {
	now := time.Now().UTC()
	return r.book.ChangeUnder(ctx, id, target.Locked, lease.Token(), func(x *book.Run) error {
		if x.State == book.Running && x.Instance == r.id && x.Token == lease.Token() {
			return nil // this call's own, whose answer was lost
		}
		if x.State != book.Queued && !(x.State == book.Waiting && x.Instance == r.id) {
			return book.ErrTaken
		}
		x.State, x.Instance, x.Started = book.Running, r.id, &now
		x.Lock, x.Token, x.Fence = target.Locked, lease.Token(), lease.Fence()
		return nil
	})
}

// unclaim puts back what may have been claimed, when the store answers.
func (r *Runner) unclaim(id string, token uint64) {
	r.settling.Go(func() { // ends when the store has answered, or with the runner
		err := r.insist(func(ctx context.Context) error {
			_, err := r.book.Change(ctx, id, func(x *book.Run) error {
				if x.Instance == r.id && x.Token == token && x.State == book.Running {
					x.State, x.Started, x.Token, x.Fence = book.Queued, nil, 0, 0
				}
				return nil
			})
			return err
		})
		if err == nil || final(err) {
			r.roster.remove(id)
		}
	})
}

// retry queues the run that follows a lost one, before all others. It may be
// called again, by any instance.
func (r *Runner) retry(ctx context.Context, lost book.Run) error {
	next, err := r.book.Run(ctx, lost.RetriedAs)
	switch {
	case errors.Is(err, book.ErrNone):
		next = lost
		next.ID, next.RetryOf, next.RetriedAs = lost.RetriedAs, lost.ID, ""
		next.State, next.Attempt, next.Reason, next.Instance = book.Queued, lost.Attempt+1, "", ""
		next.Started, next.Ended, next.Exit, next.Status, next.Token, next.Fence = nil, nil, nil, 0, 0, 0
		next.Created = *lost.Ended
		if err := r.book.Add(ctx, next); err != nil && !errors.Is(err, book.ErrTaken) {
			return err
		}
	case err != nil || next.State != book.Queued:
		return err
	}
	release, err := r.hold(ctx, lost.Job)
	if err != nil {
		return err
	}
	defer release()
	if err := r.book.EnqueueFirst(ctx, next); err != nil {
		return err
	}
	if target, ok := r.Config().Find(lost.Job); ok {
		r.note(ctx, target, next)
	}
	r.log.Info("retrying", "job", lost.Job, "run", next.ID, "retry_of", lost.ID, "attempt", next.Attempt)
	r.hub.run(next)
	return nil
}
