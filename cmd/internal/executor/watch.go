package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/guard"
)

// A watch follows a command to its end. The rule for a lock in doubt is that of
// dibs run: no renewal has been confirmed, so the trust runs out at a known moment.
// TERM goes out when only grace and margin of it are left, and KILL when margin is
// left; the store lets nobody in before its end.
type watch struct {
	process process
	lease   Lease
	limits  Limits

	timeoutAt time.Time // zero: never
	killAt    time.Time // zero: nobody is to be killed
	trust     time.Time // the end of trust, as last seen
	told      time.Time // the end of trust that the guardian knows
	lost      bool      // the loss, or the doubt, was acted on
	end       End       // the first reason why it was stopped; "": none
	reason    string
}

// A process is a *guard.Process.
type process interface {
	Exited() <-chan struct{}
	Gone() <-chan struct{}
	Overdue() bool
	Limit(guard.Limit)
	Whole()
	Terminate() error
	Kill() error
	Code() (int, error)
}

var errDoubt = errors.New("no renewal was confirmed in time")

// run returns when nothing is left of the command.
func (w *watch) run(ctx context.Context) {
	if w.limits.Timeout > 0 {
		w.timeoutAt = time.Now().Add(w.limits.Timeout)
	}
	exited, lost, stopped := w.process.Exited(), w.lease.Context().Done(), ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(w.step(time.Now()))
		select {
		case <-w.process.Gone():
			return
		case <-exited: // what it left in the background goes too
			exited = nil
			w.stop(time.Now().Add(w.limits.Grace))
		case <-lost:
			lost = nil
		case <-stopped:
			stopped = nil
			w.blame(Stopped, context.Cause(ctx).Error())
			w.process.Whole()
			w.stop(time.Now().Add(w.limits.Grace))
		case <-timer.C:
		}
	}
}

// step does what is due and tells how long to sleep. A second is the most: the
// timers sleep with a suspended machine, and the lease's clock does not.
func (w *watch) step(now time.Time) time.Duration {
	left := w.lease.Remaining()
	if left > 0 {
		w.trust = now.Add(left)
	}
	w.judge(now, left)
	if !w.limits.Warn && !w.lost && left > 0 && w.trust.Sub(w.told).Abs() >= time.Millisecond {
		w.told = w.trust
		w.process.Limit(w.limits.guard(left))
	}
	if !w.timeoutAt.IsZero() && !now.Before(w.timeoutAt) {
		w.timeoutAt = time.Time{}
		w.blame(Timeout, fmt.Sprintf("it ran for %v", w.limits.Timeout))
		w.process.Whole()
		w.stop(now.Add(w.limits.Grace))
	}
	if !w.killAt.IsZero() && !now.Before(w.killAt) {
		w.killAt = now.Add(time.Second) // once more, if a kill can miss
		_ = w.process.Kill()
	}
	sleep := time.Second
	for _, at := range []time.Time{w.killAt, w.timeoutAt} {
		if !at.IsZero() {
			sleep = min(sleep, at.Sub(now))
		}
	}
	if !w.lost && left > 0 {
		sleep = min(sleep, left-w.limits.reserve())
	}
	return max(sleep, 0)
}

// judge acts on a loss, and on a doubt that leaves just enough time to stop.
func (w *watch) judge(now time.Time, left time.Duration) {
	err := w.lease.Check()
	var lost *dibs.LostError
	out := errors.As(err, &lost) && lost.Reason == dibs.Expired // another may be in already
	switch {
	case w.lost:
		if out && !w.limits.Warn {
			w.killBy(now)
		}
		return
	case err == nil && left > w.limits.reserve(), err == nil && w.limits.Warn:
		return
	}
	w.lost = true
	if err == nil {
		err = errDoubt
	}
	if w.limits.Warn {
		return
	}
	w.blame(Lost, err.Error())
	by := now.Add(w.limits.Grace)
	if end := w.trust.Add(-w.limits.Margin); !w.trust.IsZero() && end.Before(by) {
		by = end
	}
	if out {
		by = now
	}
	w.process.Whole()
	w.stop(by)
}

// stop sends TERM now and KILL at by, unless an earlier KILL is due.
func (w *watch) stop(by time.Time) {
	_ = w.process.Terminate() // what can't be signalled is killed
	w.killBy(by)
}

func (w *watch) killBy(at time.Time) {
	if w.killAt.IsZero() || at.Before(w.killAt) {
		w.killAt = at
	}
}

// blame notes the first reason why the command was stopped. What happens after it
// has ended by itself is none.
func (w *watch) blame(end End, reason string) {
	select {
	case <-w.process.Exited():
		return
	default:
	}
	if w.end == "" {
		w.end, w.reason = end, reason
	}
}

// result is how it ended. Call it when the process is gone.
func (w *watch) result() Result {
	code, err := w.process.Code()
	switch {
	case w.end != "":
		return Result{End: w.end, Code: code, Reason: w.reason}
	case w.process.Overdue():
		return Result{End: Lost, Code: code, Reason: "the runner was stopped for so long that nothing was renewed"}
	case err != nil:
		return Result{End: Done, Code: 125, Reason: err.Error()}
	case code != 0:
		return Result{End: Done, Code: code, Reason: fmt.Sprintf("exit code %d", code)}
	}
	return Result{End: Done, OK: true}
}
