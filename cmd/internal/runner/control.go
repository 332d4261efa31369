package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/cmd/internal/book"
)

// ErrEnded: the run is over.
var ErrEnded = errors.New("the run has ended")

// Cancel ends a run, wherever it is. One that waits in a queue is over at once;
// the instance that has any other hears of it within a second or two.
func (r *Runner) Cancel(ctx context.Context, id, by string) (book.Run, error) {
	run, err := r.book.Change(ctx, id, func(x *book.Run) error {
		switch {
		case x.State.Ended():
			return ErrEnded
		case x.State == book.Queued:
			now := time.Now().UTC()
			x.State, x.Ended, x.Reason = book.Cancelled, &now, "cancelled by "+by
		}
		return nil
	})
	if err != nil {
		return run, err
	}
	r.log.Info("audit", "action", "cancel", "run", id, "job", run.Job, "by", by)
	switch {
	case run.State == book.Cancelled:
		r.hub.run(run)
		return run, r.book.Dequeue(ctx, run.Job, id)
	case r.cancel(id, by):
		return run, nil
	}
	return run, r.book.Order(ctx, run.Instance, id, by)
}

// cancel ends a run that this instance has in hand.
func (r *Runner) cancel(id, by string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.running[id]
	if h != nil {
		h.cancel(&cancelError{by})
	}
	return h != nil
}

// obey does what others want of this instance.
func (r *Runner) obey(ctx context.Context) {
	cancel, err := r.book.Orders(ctx, r.id)
	if err != nil {
		return // the roster says so
	}
	for id, by := range cancel {
		r.cancel(id, by)
	}
}

// Pause keeps a job from being started, on all instances; what runs runs on, and
// what is queued waits. It tells whether that changed anything.
func (r *Runner) Pause(ctx context.Context, job, by, reason string) (bool, error) {
	if _, ok := r.Config().Find(job); !ok {
		return false, fmt.Errorf("%q: %w", job, ErrNoJob)
	}
	changed, err := r.book.Pause(ctx, job, &book.Pause{By: by, Reason: reason})
	if err == nil {
		r.log.Info("audit", "action", "pause", "job", job, "by", by, "reason", reason, "changed", changed)
		r.hub.job(job)
	}
	return changed, err
}

// Resume undoes Pause.
func (r *Runner) Resume(ctx context.Context, job, by string) (bool, error) {
	if _, ok := r.Config().Find(job); !ok {
		return false, fmt.Errorf("%q: %w", job, ErrNoJob)
	}
	changed, err := r.book.Pause(ctx, job, nil)
	if err == nil {
		r.log.Info("audit", "action", "resume", "job", job, "by", by, "changed", changed)
		r.hub.job(job)
	}
	return changed, err
}

// Wait returns a run when it has ended, or as it is when ctx ends.
func (r *Runner) Wait(ctx context.Context, id string) (book.Run, error) {
	feed, _ := r.Feed("")
	defer feed.Close()
	look := time.NewTicker(time.Second) // it may be another instance's
	defer look.Stop()
	for {
		run, err := r.book.Run(context.WithoutCancel(ctx), id)
		if err != nil || run.State.Ended() || ctx.Err() != nil {
			return run, err
		}
		for again := false; !again; {
			select {
			case <-feed.News():
				again = feed.tells(id)
			case <-look.C:
				again = true
			case <-ctx.Done():
				again = true
			}
		}
	}
}

// tells tells whether something has happened to a run.
func (f *Feed) tells(id string) bool {
	events, missed := f.Next()
	for _, e := range events {
		if run, ok := e.Data.(book.Run); ok && run.ID == id {
			return true
		}
	}
	return missed
}
