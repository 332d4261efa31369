package cli

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs"
)

// A signal that was sent to dibs and to the guardian is one.
func TestAnEchoIsNotPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(time.Hour)
		defer s.cancel(nil)
		s.relays = make(chan os.Signal, 1)
		signals := make(chan os.Signal, 1)
		time.AfterFunc(2*time.Second, func() { signals <- syscall.SIGHUP })
		time.AfterFunc(2050*time.Millisecond, func() { s.relays <- syscall.SIGHUP })
		time.AfterFunc(3*time.Second, func() { s.relays <- syscall.SIGTERM }) // to the guardian alone
		time.AfterFunc(4*time.Second, func() { s.relays <- syscall.SIGTERM })
		s.endAfter(10*time.Second, 7)
		code := s.supervise(stops{}, signals)
		if want := []string{"hangup 2s", "terminated 3s", "terminated 4s"}; code != 7 || !slices.Equal(s.did, want) {
			t.Errorf("code %d after %v, want 7 after %v", code, s.did, want)
		}
	})
}

func TestInterruptsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(time.Hour)
		defer s.cancel(nil)
		signals := make(chan os.Signal, 1)
		for _, at := range []time.Duration{0, 10, 20, 22, 24} {
			time.AfterFunc(at*time.Second, func() { signals <- os.Interrupt })
		}
		code := s.supervise(stops{killAfter: time.Minute}, signals)
		want := []string{"interrupt 0s", "interrupt 10s", "interrupt 20s", "interrupt 22s", "TERM 22s", "interrupt 24s", "KILL 24s"}
		if code != 137 || !slices.Equal(s.did, want) {
			t.Errorf("code %d after %v, want 137 after %v", code, s.did, want)
		}
	})
}

// A command that the guardian stopped has lost its lock, whatever its code.
func TestOverdueIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(time.Hour)
		defer s.cancel(nil)
		s.overdue = true
		s.endAfter(time.Second, 137)
		if code := s.supervise(stops{}, nil); code != exitLost {
			t.Errorf("exit code %d", code)
		}
	})
}

// What is stopped for a lost lock or a timeout is stopped whole, and what a command
// leaves behind at its end is the group.
func TestWhatLeftTheGroupIsStoppedWithTheCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set   func(s *stage, l *stops)
		whole bool
	}{
		"lost":    {func(s *stage, _ *stops) { s.lose(time.Second, dibs.RevokedAway) }, true},
		"timeout": {func(_ *stage, l *stops) { l.timeout = time.Second }, true},
		"end":     {func(s *stage, _ *stops) { time.AfterFunc(time.Second, func() { close(s.exited) }) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(time.Hour)
				defer s.cancel(nil)
				limits := stops{grace: time.Second, killAfter: time.Second}
				test.set(s, &limits)
				s.supervise(limits, nil)
				if s.whole != test.whole {
					t.Errorf("whole: %v, want %v", s.whole, test.whole)
				}
			})
		})
	}
}
