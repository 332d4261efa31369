package cli

import (
	"os"
	"slices"
	"time"

	"github.com/dibslock/dibs/cmd/internal/guard"
)

// inform tells the guardian until when the command may run, so that it does not
// run longer if dibs is stopped. It acts half a margin later than dibs would.
func (s *supervisor) inform(left time.Duration) {
	if s.limits.warnOnly || s.lost != nil || left <= 0 || s.trust.Sub(s.told).Abs() < time.Millisecond {
		return
	}
	s.told = s.trust
	s.process.Limit(s.limits.guard(left))
}

func (l stops) guard(left time.Duration) guard.Limit {
	kill := left - l.margin/2
	return guard.Limit{Term: kill - l.grace, Kill: max(kill, 1)}
}

// echoTime is how long after a signal to dibs the same one to the guardian is
// taken for its echo: who stops a service sends it to every process.
const echoTime = time.Second

// hear takes a signal to dibs.
func (s *supervisor) hear(sig os.Signal) {
	if s.heard == nil {
		s.heard = make(map[os.Signal]time.Time)
	}
	s.heard[sig] = time.Now()
	s.pass(sig)
}

// asked tells whether a signal to dibs asked the command to end.
func (s *supervisor) asked() bool {
	for sig := range s.heard {
		if slices.Contains(quitting, sig) {
			return true
		}
	}
	return false
}

// relayed takes a signal that was sent to the guardian: by the command, which
// takes it for dibs, or by one that meant all processes.
func (s *supervisor) relayed(sig os.Signal) {
	if at, ok := s.heard[sig]; !ok || time.Since(at) > echoTime {
		s.pass(sig)
	}
}

// An impatience counts interrupts that come one after the other.
type impatience struct {
	n    int
	last time.Time
}

// impatient is how soon the next interrupt must come to be counted.
const impatient = 5 * time.Second

// insist acts on the second interrupt, and on the third: whoever sends them has
// seen that one was not enough.
func (s *supervisor) insist(sig os.Signal) {
	if sig != os.Interrupt {
		return
	}
	now := time.Now()
	if now.Sub(s.sigints.last) > impatient {
		s.sigints.n = 0
	}
	s.sigints.n++
	s.sigints.last = now
	switch s.sigints.n {
	case 1:
	case 2:
		s.tell("interrupted again: stopping the command (TERM now, KILL in %s, or at the next interrupt)", short(s.limits.killAfter))
		s.stop(now.Add(s.limits.killAfter))
	default:
		s.killed = false
		s.killBy(now)
	}
}

// bereaved stops the command because the parent of dibs has ended.
func (s *supervisor) bereaved() {
	if s.over() {
		return
	}
	s.tell("the process that started dibs has ended; stopping the command (TERM now, KILL in %s)", short(s.limits.killAfter))
	s.events.add(event{Event: "bereaved"})
	s.stop(time.Now().Add(s.limits.killAfter))
}
