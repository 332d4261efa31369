package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/guard"
)

// A supervisor follows a running command: it passes signals on, stops the
// command when the lock is lost or the time is over, and cleans up behind it.
//
// The rule for a lock in doubt: no renewal has been confirmed, so the trust runs
// out at a known moment. TERM goes out when only grace + margin of it are left,
// and KILL when margin is left; the store lets nobody in before its end.
type supervisor struct {
	process process
	lease   trusted
	key     string
	limits  stops
	signals <-chan os.Signal
	trouble func() error // why renewals fail
	renewed <-chan struct{}
	parent  <-chan struct{} // closed when the parent process has ended; nil: never
	job     *job
	events  *events
	stderr  io.Writer
	log     *slog.Logger

	timeoutAt time.Time // zero: never
	killAt    time.Time // zero: nobody is to be killed
	trust     time.Time // the end of trust, as last seen
	ended     bool      // the command itself has ended
	frozen    bool      // a TSTP was passed on, and no CONT since
	killed    bool      // KILL was sent: there is nothing left to send
	told      time.Time // the end of trust that the guardian knows
	sigints   impatience
	heard     map[os.Signal]time.Time // when a signal came last
	lost      error                   // the loss, or the doubt, that was acted on
	said      string                  // what was told of it last
	code      int                     // the exit code that dibs itself gives; 0: the command's
}

// stops are the limits of a command.
type stops struct {
	grace     time.Duration // TERM to KILL when the lock is lost
	margin    time.Duration // KILL to the end of trust
	timeout   time.Duration // 0: none
	killAfter time.Duration // TERM to KILL otherwise
	escalate  bool          // killAfter is for a TERM from outside too
	warnOnly  bool          // a loss doesn't stop the command
}

// A process is a *guard.Process.
type process interface {
	Exited() <-chan struct{}
	Gone() <-chan struct{}
	Stopped() <-chan syscall.Signal
	Relayed() <-chan os.Signal
	Overdue() bool
	Limit(guard.Limit)
	Whole()
	Signal(os.Signal) error
	Terminate() error
	Kill() error
	Code() (int, error)
}

// trusted is a *dibs.Lease.
type trusted interface {
	Check() error
	Remaining() time.Duration
	Context() context.Context
}

var errDoubt = errors.New("no renewal was confirmed in time")

// run returns when nothing is left of the command.
func (s *supervisor) run() error {
	if s.limits.timeout > 0 {
		s.timeoutAt = time.Now().Add(s.limits.timeout)
	}
	exited, lost := s.process.Exited(), s.lease.Context().Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.step(time.Now()))
		select {
		case <-s.process.Gone():
			return s.verdict()
		case <-exited:
			exited = nil
			s.job.ended()
			s.cleanUp()
		case <-lost:
			lost = nil
		case <-s.renewed:
		case sig := <-s.signals:
			s.hear(sig)
		case sig := <-s.process.Relayed():
			s.relayed(sig)
		case sig := <-s.process.Stopped():
			if s.job.stopped(sig) {
				s.report("continue", s.process.Signal(contSignal))
			}
		case <-s.parent:
			s.parent = nil
			s.bereaved()
		case <-timer.C:
		}
	}
}

// step does what is due and tells how long to sleep. A second is the most: the
// timers sleep with a suspended machine, and the lease's clock does not.
func (s *supervisor) step(now time.Time) time.Duration {
	left := s.lease.Remaining()
	if left > 0 {
		s.trust = now.Add(left)
	}
	s.judge(now, left)
	s.inform(left)
	if !s.timeoutAt.IsZero() && !now.Before(s.timeoutAt) {
		s.timeoutAt = time.Time{}
		if !s.over() {
			s.blame(exitTimeout)
			s.events.add(event{Event: "timeout"})
			s.tell("timeout: %s ran for %s; stopping the command (TERM now, KILL in %s)", quote(s.key), short(s.limits.timeout), short(s.limits.killAfter))
			s.stopAll(now.Add(s.limits.killAfter))
		}
	}
	if !s.killAt.IsZero() && !now.Before(s.killAt) {
		s.killAt, s.killed = time.Time{}, true
		s.report("kill", s.process.Kill())
	}
	sleep := time.Second
	for _, at := range []time.Time{s.killAt, s.timeoutAt} {
		if !at.IsZero() {
			sleep = min(sleep, at.Sub(now))
		}
	}
	if s.lost == nil && left > 0 {
		sleep = min(sleep, left-s.reserve())
	}
	return max(sleep, 0)
}

// reserve is how much trust it takes to stop the command.
func (s *supervisor) reserve() time.Duration {
	if s.limits.warnOnly {
		return 0
	}
	return s.limits.grace + s.limits.margin
}

// judge acts on a loss, and on a doubt that leaves just enough time to stop.
func (s *supervisor) judge(now time.Time, left time.Duration) {
	err := s.lease.Check()
	switch {
	case err == nil && (s.lost != nil || left > s.reserve()):
		return
	case err != nil && s.lost != nil:
		if out(err) && !s.limits.warnOnly {
			s.killBy(now)
		}
		return
	case s.limits.warnOnly:
		if err != nil {
			s.lost = err
			s.events.add(event{Event: "lost", Reason: err.Error()})
			s.tell("warning: %v; the command runs on without the lock (--on-lost warn)", err)
		}
		return
	}
	if err == nil {
		err = errDoubt
	}
	s.lost = err
	s.events.add(event{Event: "lost", Reason: s.why(err)})
	if !s.over() {
		s.blame(exitLost)
	}
	by := now.Add(s.limits.grace)
	if !s.trust.IsZero() {
		by = earlier(by, s.trust.Add(-s.limits.margin))
	}
	if out(err) {
		by = now // another may be in already
	}
	s.tell("lost %s: %s; stopping the command (TERM now, KILL in %s)", quote(s.key), s.why(err), short(max(by.Sub(now), 0)))
	s.stopAll(by)
}

// out tells that the trust has run out: dibs was frozen, or the machine was.
func out(err error) bool {
	var lost *dibs.LostError
	return errors.As(err, &lost) && lost.Reason == dibs.Expired
}

func (s *supervisor) why(err error) string {
	if errors.Is(err, errDoubt) {
		if trouble := s.trouble(); trouble != nil {
			return errDoubt.Error() + " (" + trouble.Error() + ")"
		}
	}
	return err.Error()
}

// stopAll stops what left the group too.
func (s *supervisor) stopAll(by time.Time) {
	s.process.Whole()
	s.killed = false // it was the group's alone
	s.stop(by)
}

// stop sends TERM now and KILL at by, unless an earlier KILL is due.
func (s *supervisor) stop(by time.Time) {
	s.report("terminate", s.process.Terminate())
	s.killBy(by)
}

func (s *supervisor) killBy(at time.Time) {
	if !s.killed && (s.killAt.IsZero() || at.Before(s.killAt)) {
		s.killAt = at
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// cleanUp ends what the command left behind in its group.
func (s *supervisor) cleanUp() {
	select {
	case <-s.process.Gone():
		return
	default:
	}
	s.ended = true
	s.events.add(event{Event: "left-behind"})
	s.log.Info("the command has ended and left others behind: stopping them", "key", s.key, "kill_after", s.limits.killAfter)
	s.stop(time.Now().Add(s.limits.killAfter))
}

// over tells whether the command itself has ended: what happens then doesn't
// change its exit code.
func (s *supervisor) over() bool {
	select {
	case <-s.process.Exited():
		return true
	default:
		return s.ended
	}
}

// blame sets the exit code to the first reason why dibs stopped the command.
func (s *supervisor) blame(code int) {
	if s.code == 0 {
		s.code = code
	}
}

// pass passes a signal on. A TERM from outside has its KILL too, if that was
// asked for.
func (s *supervisor) pass(sig os.Signal) {
	s.log.Debug("passing a signal on", "key", s.key, "signal", sig.String())
	s.events.add(event{Event: "signal", Signal: sig.String()})
	if sig == contSignal {
		s.job.continued()
	}
	s.report("signal", s.process.Signal(sig))
	s.unfreeze(sig)
	if isTerm(sig) && s.limits.escalate {
		s.killBy(time.Now().Add(s.limits.killAfter))
	}
	s.insist(sig)
}

// unfreeze has a group that a TSTP from us has stopped hear of a signal that is to
// end it.
func (s *supervisor) unfreeze(sig os.Signal) {
	switch {
	case sig == stopSignal:
		s.frozen = true
	case sig == contSignal:
		s.frozen = false
	case s.frozen && slices.Contains(ending, sig):
		s.frozen = false
		s.report("continue", s.process.Signal(contSignal))
	}
}

func (s *supervisor) report(what string, err error) {
	if err != nil {
		say(s.stderr, "can't %s the command: %v", what, err)
	}
}

// tell says what has become of the run, for people now and for the report.
func (s *supervisor) tell(format string, args ...any) {
	s.said = fmt.Sprintf(format, args...)
	say(s.stderr, "%s", s.said)
}

// verdict is how the run ended.
func (s *supervisor) verdict() error {
	s.job.ended()
	code, err := s.process.Code()
	if s.code == 0 && s.process.Overdue() {
		s.blame(exitLost)
		s.lost = errOverdue
		s.events.add(event{Event: "lost", Reason: errOverdue.Error()})
		s.tell("lost %s: %v; the command was stopped before the lock ended", quote(s.key), errOverdue)
	}
	s.job.restore(cmp.Or(s.code, code))
	if err == nil {
		s.events.add(event{Event: "exited", Command: &code})
	} else {
		s.events.add(event{Event: "exited", Reason: err.Error()})
	}
	switch {
	case s.code != 0:
		return &failure{code: s.code}
	case err != nil:
		return failf(exitFailed, "%s: %v", quote(s.key), err)
	}
	return &failure{code: code}
}

var errOverdue = errors.New("dibs was stopped for so long that nothing was renewed")
