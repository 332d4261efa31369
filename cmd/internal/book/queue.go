package book

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A queue is the runs of a job that wait, the first first.
type queue struct {
	Runs []string `json:"runs"`
}

// A FullError says that a queue takes no more.
type FullError struct {
	Job string
	Max int
}

// Error says so.
func (e *FullError) Error() string {
	return fmt.Sprintf("the queue of %q is full: %d wait", e.Job, e.Max)
}

// Enqueue puts a run at the end of its job's queue, and returns its position,
// from 1. A *FullError: max wait already.
func (b *Book) Enqueue(ctx context.Context, r Run, most int) (position int, err error) {
	err = edit(ctx, b, "queue/"+r.Job, stamp{}, func(q *queue, _ bool, _ time.Time) (time.Duration, error) {
		if i := slices.Index(q.Runs, r.ID); i >= 0 {
			position = i + 1
			return 0, errSame
		}
		if len(q.Runs) >= most {
			return 0, &FullError{Job: r.Job, Max: most}
		}
		q.Runs = append(q.Runs, r.ID)
		position = len(q.Runs)
		return forever, nil
	})
	return position, err
}

// Queue returns the runs that wait, in order.
func (b *Book) Queue(ctx context.Context, job string) ([]string, error) {
	var q queue
	_, _, err := b.load(ctx, "queue/"+job, &q)
	return q.Runs, err
}

// Dequeue removes runs from a queue.
func (b *Book) Dequeue(ctx context.Context, job string, ids ...string) error {
	return edit(ctx, b, "queue/"+job, stamp{}, func(q *queue, found bool, _ time.Time) (time.Duration, error) {
		before := len(q.Runs)
		q.Runs = slices.DeleteFunc(q.Runs, func(id string) bool { return slices.Contains(ids, id) })
		switch {
		case !found || len(q.Runs) == before:
			return 0, errSame
		case len(q.Runs) == 0:
			return 0, nil
		}
		return forever, nil
	})
}

// EnqueueFirst puts a run before all others, whose turn has been before. It isn't
// bounded: the run is in the place of one that was accepted.
func (b *Book) EnqueueFirst(ctx context.Context, r Run) error {
	return edit(ctx, b, "queue/"+r.Job, stamp{}, func(q *queue, _ bool, _ time.Time) (time.Duration, error) {
		if slices.Contains(q.Runs, r.ID) {
			return 0, errSame
		}
		q.Runs = slices.Insert(q.Runs, 0, r.ID)
		return forever, nil
	})
}
