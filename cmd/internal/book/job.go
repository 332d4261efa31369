package book

import (
	"context"
	"slices"
	"strings"
	"time"
)

// A Job is what is known of a job beside its configuration.
type Job struct {
	Paused *Pause   `json:"paused,omitempty"`
	Runs   []string `json:"runs"` // the newest first
}

// A Pause is an operator's.
type Pause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// Job returns what is known of a job, and the store's now.
func (b *Book) Job(ctx context.Context, id string) (Job, time.Time, error) {
	var j Job
	_, now, err := b.load(ctx, "job/"+id, &j)
	return j, now, err
}

// Pause pauses a job, or with nil resumes it, and tells whether that changed
// anything.
func (b *Book) Pause(ctx context.Context, id string, p *Pause) (changed bool, err error) {
	err = edit(ctx, b, "job/"+id, stamp{}, func(j *Job, _ bool, now time.Time) (time.Duration, error) {
		if (j.Paused == nil) == (p == nil) {
			return 0, errSame
		}
		changed, j.Paused = true, p
		if p != nil {
			p.Since = now
		}
		return forever, nil
	})
	return changed, err
}

// Note adds a run to those of its job, and returns those that are too many by
// now: at most most are noted.
func (b *Book) Note(ctx context.Context, r Run, most int) (old []string, err error) {
	err = edit(ctx, b, "job/"+r.Job, stamp{}, func(j *Job, _ bool, _ time.Time) (time.Duration, error) {
		if slices.Contains(j.Runs, r.ID) {
			return 0, errSame
		}
		// By id, which is by time: runs can be noted in another order.
		i, _ := slices.BinarySearchFunc(j.Runs, r.ID, func(have, id string) int { return strings.Compare(id, have) })
		j.Runs = slices.Insert(j.Runs, i, r.ID)
		old = nil
		if len(j.Runs) > most {
			old = slices.Clone(j.Runs[most:])
			j.Runs = j.Runs[:most]
		}
		if j.Paused != nil {
			return forever, nil
		}
		return r.Keep, nil
	})
	return old, err
}
