package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/schedule"
)

const (
	// ahead is how much further than the store's clock this instance's may be for
	// it to decide a tick.
	ahead = 3 * time.Second
	// lateness is how late a tick may be found and still be run as if in time.
	lateness = time.Minute
	// maxMissed bounds how many ticks are counted at once.
	maxMissed = 10_000
)

// startTicks follows the schedules of the configuration in force, in place of
// those before.
func (r *Runner) startTicks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ticks != nil {
		r.ticks()
	}
	if r.intake.Err() != nil {
		return
	}
	var ctx context.Context
	ctx, r.ticks = context.WithCancel(r.intake)
	for _, j := range r.Config().Jobs {
		if s := scheduleOf(j); s != nil {
			f := &follower{r: r, job: j, schedule: s}
			r.feeders.Go(func() { f.run(ctx) }) // ends with ctx
		}
	}
}

// scheduleOf returns a job's schedule, or nil. It was checked with the file.
func scheduleOf(j *config.Job) *schedule.Schedule {
	if len(j.Schedule) == 0 {
		return nil
	}
	s, _ := schedule.New(j.ID, j.Schedule, j.Location, j.Jitter.Duration)
	return s
}

// A follower follows one job's schedule. Every instance does; each tick is decided
// by whoever moves the job's record to it.
type follower struct {
	r        *Runner
	job      *config.Job
	schedule *schedule.Schedule
	unsure   *decision // made, and the store gave no clear answer
}

// A decision is what is to become of the ticks up to one.
type decision struct {
	id     string    // of the run, or of the record that there was none
	tick   time.Time // the last one
	before int       // how many are before it
	last   time.Time // the last of those
	runs   bool
	wait   bool // for the end of the run, before the next tick
}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		tick, at, err := f.r.book.Tick(ctx, f.job.ID)
		if err != nil {
			f.sleep(ctx, time.Second) // the roster says why
			continue
		}
		next := f.schedule.Next(tick.Last)
		if next.IsZero() {
			<-ctx.Done()
			return
		}
		due := f.schedule.Due(next)
		if show := f.r.opts.Observer.Next; show != nil {
			show(f.job.ID, due)
		}
		// This instance's clock says when to look again; the store's, whether it
		// may be so late.
		if wait := due.Sub(f.r.now()); wait > 0 {
			f.sleep(ctx, min(wait, time.Minute))
			continue
		}
		if early := due.Sub(at) - ahead; early > 0 {
			f.r.log.Warn("this clock is ahead of the store's", "job", f.job.ID, "by", early+ahead)
			f.sleep(ctx, min(early, time.Minute))
			continue
		}
		if err := f.decide(ctx, tick, next, at.Add(ahead)); err != nil && ctx.Err() == nil {
			f.r.log.Warn("the tick waits", "job", f.job.ID, "scheduled_at", next, "err", err)
			f.sleep(ctx, time.Second)
		}
	}
}

func (f *follower) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// decide decides all ticks that are due, beginning with next; none that is due
// after most, whatever this instance's clock says.
func (f *follower) decide(ctx context.Context, from book.Tick, next, most time.Time) error {
	if d := f.unsure; d != nil && from.Had(d.id) {
		f.unsure = nil
		f.carryOut(ctx, d)
		return nil
	}
	now := f.r.now()
	if now.After(most) {
		now = most
	}
	d := &decision{id: book.NewID(), tick: next}
	if f.job.Missed != "all" {
		for d.before < maxMissed {
			at := f.schedule.Next(d.tick)
			if at.IsZero() || f.schedule.Due(at).After(now) {
				break
			}
			d.tick, d.last, d.before = at, d.tick, d.before+1
		}
	}
	intime := now.Sub(f.schedule.Due(d.tick)) <= lateness
	d.runs = intime || f.job.Missed != "skip"
	d.wait = !intime && f.job.Missed == "all"
	// The others shall find the tick if this instance dies with it.
	if err := f.r.roster.add(ctx, book.Active{Run: d.id, Job: f.job.ID, Tick: &d.tick}); err != nil {
		f.r.roster.remove(tickKey(d.id))
		return err
	}
	call, cancel := context.WithTimeout(f.r.ctx, settleTime)
	mine, err := f.r.book.Claim(call, f.job.ID, from.Last, d.tick, d.id)
	cancel()
	switch {
	case err != nil:
		f.unsure = d
		return err
	case !mine:
		f.r.roster.remove(tickKey(d.id))
		return nil
	}
	f.carryOut(ctx, d)
	return nil
}

// carryOut does what was decided.
func (f *follower) carryOut(ctx context.Context, d *decision) {
	const nobody = "no instance was there"
	defer f.r.roster.remove(tickKey(d.id))
	if !d.runs {
		f.record(book.Run{ID: d.id, State: book.Missed, Reason: nobody, Tick: &d.tick, Count: d.before + 1})
		return
	}
	if d.before > 0 {
		f.record(book.Run{ID: book.NewID(), State: book.Missed, Reason: nobody, Tick: &d.last, Count: d.before})
	}
	f.trigger(d.tick, d.id)
	if d.wait {
		f.r.awaitEnd(ctx, d.id) // one after another, as they would have been
	}
}

// trigger asks for the run of a tick. Whatever comes of it is written down.
func (f *follower) trigger(tick time.Time, id string) {
	q := Request{Job: f.job.ID, Trigger: "schedule", By: "schedule", Tick: tick, RunID: id}
	var err error
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		call, cancel := context.WithTimeout(f.r.ctx, settleTime)
		_, err = f.r.Trigger(call, q)
		cancel()
		if err == nil {
			return
		}
		late := f.r.now().Sub(f.schedule.Due(f.schedule.Next(tick))) > 0
		if reasonOf(err) != "" || final(err) || late {
			break
		}
		q.RunID = book.NewID() // what became of the one before is settled by abandon
		f.r.rest(pause)
	}
	run := book.Run{ID: id, State: book.Skipped, Reason: reasonOf(err), Tick: &tick, Count: 1}
	var busy *BusyError
	switch {
	case errors.As(err, &busy):
		run.Holder = holderOf(busy.HeldError)
	case run.Reason == "draining", run.Reason == "":
		run.State, run.Reason = book.Missed, fmt.Sprintf("it could not be started: %v", err)
	}
	f.record(run)
}

// record writes what became of a tick that wasn't run.
func (f *follower) record(run book.Run) {
	now := time.Now().UTC()
	run.Job, run.Trigger, run.By, run.Instance = f.job.ID, "schedule", "schedule", f.r.id
	run.Created, run.Ended, run.Keep = now, &now, f.job.History.Keep.Duration
	f.r.log.Info("completion", "job", run.Job, "run", run.ID, "state", run.State, "reason", run.Reason, "holder", run.Holder, "ticks", run.Count)
	if show := f.r.opts.Observer.Ended; show != nil && run.State == book.Missed {
		show(f.job.ID, run.State, 0)
	}
	target, ok := f.r.Config().Find(f.job.ID)
	f.r.settling.Go(func() { // ends when the store has answered, or with the runner
		err := f.r.insist(func(ctx context.Context) error { return f.r.book.Add(ctx, run) })
		if err == nil && ok {
			ctx, cancel := context.WithTimeout(f.r.ctx, settleTime)
			defer cancel()
			f.r.note(ctx, target, run)
			f.r.hub.run(run)
		}
	})
}

// awaitEnd waits for the end of a run.
func (r *Runner) awaitEnd(ctx context.Context, id string) {
	for ctx.Err() == nil {
		run, err := r.Wait(ctx, id)
		if err == nil && run.State.Ended() || errors.Is(err, book.ErrNone) {
			return
		}
	}
}

// Next returns when a job is due next, by this instance's clock; the zero time if
// it has no schedule.
func (r *Runner) Next(j *config.Job) time.Time {
	s := scheduleOf(j)
	if s == nil {
		return time.Time{}
	}
	next := s.Next(r.now())
	if next.IsZero() {
		return next
	}
	return s.Due(next).UTC()
}
