package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/driver"
)

const (
	// suspicion is after how long without a beat an instance's locks are tried.
	suspicion = 1500 * time.Millisecond
	// oblivion is after how long without a beat it is gone: what it had that no
	// lock proves is given up.
	oblivion = 10 * time.Second
	// lookPause is how often the others are looked at, and nearer how often a
	// suspect is.
	lookPause = beatPause / 2
	nearer    = 200 * time.Millisecond
)

// A sight is when an instance was last seen to beat, by this instance's clock: no
// two clocks are compared.
type sight struct {
	beat  uint64
	since time.Time
}

// sweep looks after the other instances until ctx ends.
func (r *Runner) sweep(ctx context.Context) {
	seen := make(map[string]sight)
	for pause := time.Duration(0); ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = lookPause
		r.obey(ctx)
		if r.intake.Err() != nil {
			continue // who goes takes nothing over
		}
		all, err := r.book.Instances(ctx)
		if err != nil {
			continue // the roster says so
		}
		r.hub.instances(all)
		for _, in := range all {
			if in.ID == r.id {
				continue
			}
			s, now := seen[in.ID], time.Now()
			if s.beat != in.Beat || s.since.IsZero() {
				seen[in.ID] = sight{in.Beat, now}
				s = seen[in.ID]
			}
			age := now.Sub(s.since)
			if !in.Left && age < suspicion {
				continue
			}
			if len(in.Active) > 0 {
				pause = nearer
			}
			if r.inherit(ctx, in, in.Left || age >= oblivion) {
				delete(seen, in.ID)
			}
		}
	}
}

// inherit sees to what an instance has left behind, as far as that is proved, and
// tells whether all of it was.
func (r *Runner) inherit(ctx context.Context, in book.Instance, gone bool) bool {
	for _, a := range in.Active {
		if err := r.takeOver(ctx, in, a, gone); err != nil {
			if !errors.Is(err, errAlive) && ctx.Err() == nil {
				r.log.Warn("a run was not taken over", "run", a.Run, "from", in.ID, "err", err)
			}
			gone = false
		}
	}
	if !gone {
		return false
	}
	for _, job := range in.Queues {
		release, err := r.hold(ctx, job)
		if err != nil {
			return false
		}
		release()
	}
	if err := r.book.Forget(ctx, in.ID); err != nil {
		return false
	}
	r.log.Info("an instance is gone", "gone", in.ID, "host", in.Host, "pid", in.Pid, "left", in.Left)
	return true
}

var errAlive = errors.New("the lock is still held")

// takeOver ends a run of an instance that is suspected, once the store proves that
// its lock isn't its own any more. nil: there is nothing left to do about it.
func (r *Runner) takeOver(ctx context.Context, in book.Instance, a book.Active, gone bool) error {
	run, err := r.book.Run(ctx, a.Run)
	switch {
	case a.Tick != nil && errors.Is(err, book.ErrNone) && gone:
		return r.missed(ctx, a)
	case a.Tick != nil && errors.Is(err, book.ErrNone):
		return errAlive // it may be about to begin it
	case errors.Is(err, book.ErrNone):
		return nil
	case err != nil:
		return err
	case run.State == book.Lost && run.RetriedAs != "":
		return r.retry(ctx, run) // who marked it may have died before it was queued
	case run.State == book.Queued:
		return r.requeue(ctx, run) // it may have died before it was queued
	case run.State.Ended(), run.Instance != in.ID:
		return nil
	case run.Token == 0 && !gone:
		return errAlive // it only waits, so nothing proves its death
	}
	token, done, err := r.proof(ctx, run)
	if err != nil {
		return err
	}
	defer done()
	target, known := r.Config().Find(run.Job)
	now := time.Now().UTC()
	next := book.NewID()
	lost, err := r.book.ChangeUnder(ctx, run.ID, run.Lock, token, func(x *book.Run) error {
		switch {
		case x.State == book.Lost && x.Ended.Equal(now):
			return nil // written, and the answer was lost
		case x.State.Ended() || x.Instance != in.ID || x.Token != run.Token:
			return book.ErrTaken
		}
		x.State, x.Ended = book.Lost, &now
		x.Reason = fmt.Sprintf("its instance (pid %d on %s) died or lost the lock", in.Pid, in.Host)
		if known && retriable(target, run) {
			x.RetriedAs = next
		}
		return nil
	})
	if err != nil {
		if final(err) {
			err = nil // another was quicker
		}
		return err
	}
	r.log.Warn("lost", "job", run.Job, "run", run.ID, "from", in.ID, "reason", lost.Reason)
	if f := r.opts.Observer.Ended; f != nil && known && run.Started != nil {
		f(target.ID, book.Lost, now.Sub(*run.Started))
	}
	r.hub.run(lost)
	if lost.RetriedAs != "" {
		return r.retry(ctx, lost)
	}
	return nil
}

// missed writes down a tick whose instance died between deciding it and beginning
// its run.
func (r *Runner) missed(ctx context.Context, a book.Active) error {
	tick, _, err := r.book.Tick(ctx, a.Job)
	if err != nil || !tick.Had(a.Run) {
		return err // another has decided it
	}
	target, ok := r.Config().Find(a.Job)
	if !ok {
		return nil
	}
	f := &follower{r: r, job: target.Job}
	f.record(book.Run{ID: a.Run, State: book.Missed, Reason: "its instance died before it could be started", Tick: a.Tick, Count: 1})
	return nil
}

// requeue makes sure that a run that waits is in its queue.
func (r *Runner) requeue(ctx context.Context, run book.Run) error {
	release, err := r.hold(ctx, run.Job)
	if err != nil {
		return err
	}
	defer release()
	_, err = r.book.Enqueue(ctx, run, math.MaxInt)
	return err
}

// proof returns the largest token that the store has given out on the run's lock,
// if the run doesn't hold it any more; errAlive if it does.
func (r *Runner) proof(ctx context.Context, run book.Run) (token uint64, done func(), err error) {
	none := func() {}
	if run.Token == 0 {
		return 0, none, nil
	}
	target, ok := r.Config().Find(run.Job)
	if !ok || target.Concurrency > 1 || target.Locked != run.Lock {
		return r.listed(ctx, run)
	}
	lease, err := r.watchman(target).TryLock(ctx)
	if err == nil {
		return lease.Token(), func() { r.forgo(lease) }, nil
	}
	var held *dibs.HeldError
	if !errors.As(err, &held) {
		return 0, none, err
	}
	switch h := held.Holder; {
	case h == nil, h.Token == 0:
		return 0, none, errAlive
	case h.Token != run.Token:
		return max(h.Token, run.Token), none, nil
	case over(h.State):
		return run.Token, none, nil
	}
	return 0, none, errAlive
}

// watchman is a lock that is asked for to see whether it is free.
func (r *Runner) watchman(target config.Target) *dibs.Locker {
	s := r.settings(target.Job, "a look after job "+target.Name)
	s.Keep, s.Delay = dibs.Off, dibs.Off
	return r.client.With(s).Mutex(target.Locked)
}

// over tells that a claim in this state isn't held by anybody any more.
func over(s driver.State) bool { return s == driver.Kept || s == driver.Draining }

// listed is the proof for a lock that several may hold, or that the configuration
// doesn't know any more.
func (r *Runner) listed(ctx context.Context, run book.Run) (uint64, func(), error) {
	for h, err := range r.client.Holders(ctx, run.Lock) {
		if err != nil {
			return 0, func() {}, err
		}
		if h.Name == run.Lock && h.Token == run.Token && !over(h.State) {
			return 0, func() {}, errAlive
		}
	}
	return run.Token, func() {}, nil
}
