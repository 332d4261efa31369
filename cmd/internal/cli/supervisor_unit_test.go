package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/guard"
)

// A stage is a command and a lease that do as they are told.
type stage struct {
	exited, gone chan struct{}
	code         int
	began        time.Time
	did          []string // what the supervisor did, and when
	onTerm       time.Duration
	onKill       time.Duration
	relays       chan os.Signal
	overdue      bool
	whole        bool

	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex // guards until
	until time.Time  // the end of trust
}

// trust sets the end of trust.
func (s *stage) trust(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
}

func (s *stage) trusted() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.until)
}

const never = time.Duration(-1)

func newStage(trust time.Duration) *stage {
	now := time.Now()
	s := &stage{exited: make(chan struct{}), gone: make(chan struct{}), began: now, until: now.Add(trust), onTerm: never}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

func (s *stage) Exited() <-chan struct{} { return s.exited }
func (s *stage) Gone() <-chan struct{}   { return s.gone }
func (s *stage) Code() (int, error)      { return s.code, nil }

func (s *stage) Stopped() <-chan syscall.Signal { return nil }
func (s *stage) Relayed() <-chan os.Signal      { return s.relays }
func (s *stage) Overdue() bool                  { return s.overdue }
func (s *stage) Limit(guard.Limit)              {}
func (s *stage) Whole()                         { s.whole = true }
func (s *stage) Signal(sig os.Signal) error {
	s.note(sig.String())
	return nil
}

func (s *stage) Terminate() error {
	s.note("TERM")
	if s.onTerm != never {
		s.endAfter(s.onTerm, 143)
	}
	return nil
}

func (s *stage) Kill() error {
	s.note("KILL")
	s.endAfter(s.onKill, 137)
	return nil
}

func (s *stage) note(what string) {
	s.did = append(s.did, what+" "+time.Since(s.began).String())
}

// endAfter ends the command, and with it its group.
func (s *stage) endAfter(d time.Duration, code int) {
	time.AfterFunc(d, func() {
		select {
		case <-s.gone:
			return
		default:
		}
		select {
		case <-s.exited:
			close(s.gone)
		default:
			s.code = code
			close(s.gone)
			close(s.exited)
		}
	})
}

func (s *stage) Context() context.Context { return s.ctx }

func (s *stage) Check() error {
	if s.ctx.Err() == nil && s.trusted() <= 0 {
		s.cancel(&dibs.LostError{Name: "k", Reason: dibs.Expired})
	}
	return context.Cause(s.ctx)
}

func (s *stage) Remaining() time.Duration {
	if s.Check() != nil {
		return 0
	}
	return s.trusted()
}

// renew extends the trust every third of ttl, until n times are over.
func (s *stage) renew(ttl time.Duration, n int) {
	for i := range n {
		time.AfterFunc(ttl/3*time.Duration(i+1), func() {
			if s.Check() == nil {
				s.trust(time.Now().Add(ttl))
			}
		})
	}
}

func (s *stage) lose(after time.Duration, reason dibs.Reason) {
	time.AfterFunc(after, func() { s.cancel(&dibs.LostError{Name: "k", Reason: reason}) })
}

// supervise runs a supervisor on the stage, and returns the exit code.
func (s *stage) supervise(limits stops, signals <-chan os.Signal) int {
	sup := &supervisor{
		process: s, lease: s, key: "k", limits: limits, signals: signals,
		trouble: func() error { return errors.New("no route") },
		stderr:  io.Discard, log: slog.New(slog.DiscardHandler),
	}
	code, _ := verdict(sup.run())
	return code
}

func TestSupervisor(t *testing.T) {
	t.Parallel()
	usual := stops{grace: 5 * time.Second, margin: time.Second, killAfter: 10 * time.Second}
	with := func(change func(*stops)) stops {
		l := usual
		change(&l)
		return l
	}
	for name, test := range map[string]struct {
		limits stops
		set    func(s *stage)
		sig    os.Signal // arrives after 2s
		code   int
		did    []string
	}{
		"a command ends by itself": {
			limits: usual, code: 7,
			set: func(s *stage) { s.renew(30*time.Second, 100); s.endAfter(10*time.Minute, 7) },
		},
		"a doubt stops it with grace and margin left": {
			limits: usual, code: 79, did: []string{"TERM 24s", "KILL 29s"},
			set: func(*stage) {},
		},
		"one that ends on TERM isn't killed": {
			limits: usual, code: 79, did: []string{"TERM 24s"},
			set: func(s *stage) { s.onTerm = time.Second },
		},
		"renewals put the doubt off": {
			limits: usual, code: 79, did: []string{"TERM 44s", "KILL 49s"},
			set: func(s *stage) { s.renew(30*time.Second, 2) },
		},
		"a renewal after the TERM doesn't take it back": {
			limits: usual, code: 79, did: []string{"TERM 24s", "KILL 29s"},
			set: func(s *stage) { time.AfterFunc(25*time.Second, func() { s.trust(time.Now().Add(time.Hour)) }) },
		},
		"a revocation gives it its grace": {
			limits: usual, code: 79, did: []string{"TERM 3.3s", "KILL 8.3s"},
			set: func(s *stage) { s.lose(3300*time.Millisecond, dibs.RevokedAway) },
		},
		"after a freeze it is killed at once": {
			limits: usual, code: 79, did: []string{"TERM 3.3s", "KILL 3.3s"},
			set: func(s *stage) { s.lose(3300*time.Millisecond, dibs.Expired) },
		},
		"a timeout has its own code": {
			limits: with(func(l *stops) { l.timeout = 2 * time.Second }), code: 124, did: []string{"TERM 2s", "KILL 12s"},
			set: func(s *stage) { s.renew(30*time.Second, 9) },
		},
		"a timeout in time of doubt is killed for the doubt": {
			limits: with(func(l *stops) { l.timeout = 20 * time.Second }), code: 124, did: []string{"TERM 20s", "TERM 24s", "KILL 29s"},
			set: func(*stage) {},
		},
		"a signal is passed on and is all that happens": {
			limits: usual, sig: os.Kill, code: 7, did: []string{"killed 2s"},
			set: func(s *stage) { s.renew(30*time.Second, 100); s.endAfter(5*time.Minute, 7) },
		},
		"what is left behind has killAfter": {
			limits: usual, code: 7, did: []string{"TERM 4s", "KILL 14s"},
			set: func(s *stage) {
				s.renew(30*time.Second, 9)
				time.AfterFunc(4*time.Second, func() { s.code = 7; close(s.exited) })
			},
		},
		"a loss while cleaning up doesn't change the code": {
			limits: usual, code: 7, did: []string{"TERM 4s", "TERM 6s", "KILL 11s"},
			set: func(s *stage) {
				time.AfterFunc(4*time.Second, func() { s.code = 7; close(s.exited) })
				s.lose(6*time.Second, dibs.RevokedAway)
			},
		},
		"a loss that only warns": {
			limits: with(func(l *stops) { l.warnOnly = true }), code: 7,
			set: func(s *stage) { s.endAfter(time.Minute, 7) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(30 * time.Second)
				defer s.cancel(nil)
				test.set(s)
				signals := make(chan os.Signal, 1)
				if test.sig != nil {
					time.AfterFunc(2*time.Second, func() { signals <- test.sig })
				}
				code := s.supervise(test.limits, signals)
				if code != test.code || !slices.Equal(s.did, test.did) {
					t.Errorf("code %d after %v, want %d after %v", code, s.did, test.code, test.did)
				}
			})
		})
	}
}
