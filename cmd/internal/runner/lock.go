package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/executor"
	"github.com/dibslock/dibs/driver"
)

// deathDelay keeps a job's lock closed after the death of its holder: the store
// may see that death before the kernel has ended the work with it.
const deathDelay = 500 * time.Millisecond

// settings are those of a job's lock. note says what it is held for.
func (r *Runner) settings(j *config.Job, note string) dibs.Settings {
	s := dibs.Settings{TTL: j.TTL.Duration, Keep: dibs.Off, Note: r.opts.Who + ": " + note}
	if len(s.Note) > driver.MaxNote {
		s.Note = s.Note[:driver.MaxNote]
	}
	if j.AtLeastFor.Duration > 0 {
		s.Keep = j.AtLeastFor.Duration
	}
	if r.client.Facts().Waived(49) == "" {
		s.Delay = deathDelay
	}
	return s
}

// locker returns the lock of a target.
func (r *Runner) locker(t config.Target, note string) *dibs.Locker {
	c := r.client.With(r.settings(t.Job, note))
	if t.Concurrency > 1 {
		return c.Semaphore(t.Locked, t.Concurrency, 1)
	}
	return c.Mutex(t.Locked)
}

// checkLocks tells what the store can't do of what the jobs want.
func (r *Runner) checkLocks(c *config.Config) error {
	var errs []error
	f := r.client.Facts()
	for id, j := range c.Jobs {
		if err := r.client.With(r.settings(j, "")).Err(); err != nil {
			errs = append(errs, fmt.Errorf("jobs.%s: %w", id, err))
		}
		if j.Concurrency > 1 && f.Modes&driver.Counted == 0 {
			errs = append(errs, fmt.Errorf("jobs.%s.concurrency: %s can't count holders", id, f.Driver))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return len(a.Error()) - len(b.Error()) })
	return errors.Join(errs...)
}

// limits bound the work of a job.
func limits(j *config.Job) executor.Limits {
	return executor.Limits{
		Timeout: j.Timeout.Duration,
		Grace:   j.Grace.Duration,
		Margin:  executor.Margin(j.TTL.Duration),
		Warn:    j.OnLost == "warn",
	}
}

// trust makes sure that the work can start under the lease.
func trust(ctx context.Context, lease *dibs.Lease, j *config.Job) error {
	return executor.Trust(ctx, lease, j.Grace.Duration, j.TTL.Duration, nil)
}

// A living store proves a death by a file that is open as long as its client
// lives: see sqlitelock.Store.LifeFile.
type living interface{ LifeFile() (*os.File, error) }

func (r *Runner) life() (*os.File, error) {
	if s, ok := r.opts.Store.(living); ok {
		return s.LifeFile()
	}
	return nil, nil
}
