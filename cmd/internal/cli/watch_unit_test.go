package cli

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// A script collects lines, and when they came.
type script struct {
	began time.Time
	mu    sync.Mutex // guards lines
	lines []string
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, time.Since(s.began).String()+" "+strings.TrimSpace(string(p)))
	return len(p), nil
}

func TestAWaitIsToldOfNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &script{began: time.Now()}
		r := &runner{stderr: out, began: time.Now(), place: place{url: "mem://", from: "the default"}}
		r.ttl.Duration = 30 * time.Second
		w := newWatch(r)
		stop := w.start()
		hooks := w.hooks()
		held := &dibs.HeldError{Name: "k", Holder: &dibs.Holder{
			State: driver.Held, Fence: 7, Age: time.Minute, Left: 25 * time.Second, TTL: 30 * time.Second, Note: "ann@db1 (pid 8): job",
		}}
		hooks.Waiting(t.Context(), dibs.AcquireInfo{}, held)
		time.Sleep(20100 * time.Millisecond)
		hooks.Retrying(t.Context(), dibs.AcquireInfo{}, errors.New("no route"))
		time.Sleep(time.Second)
		stop()
		want := []string{
			"400ms dibs: waiting: \"k\" is held by ann@db1 (pid 8) since ", ": job; renews every 10s, expires in 25s if it stops; fence 7",
			"15.6s dibs: waiting for 16s: \"k\" is held by ann@db1 (pid 8) since ", ": job; renews every 10s, expires in 9.4s if it stops; fence 7",
			"20.4s dibs: waiting for 20s: the store mem:// (the default) gives no clear answer: no route", "; giving up after 30s without one",
		}
		if len(out.lines) != len(want)/2 {
			t.Fatalf("%d lines: %q", len(out.lines), out.lines)
		}
		for i, line := range out.lines {
			if !strings.HasPrefix(line, want[2*i]) || !strings.HasSuffix(line, want[2*i+1]) {
				t.Errorf("line %q, want %q...%q", line, want[2*i], want[2*i+1])
			}
		}
	})
}

func TestAShortWaitIsNotWorthAWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &script{began: time.Now()}
		w := newWatch(&runner{stderr: out, began: time.Now()})
		stop := w.start()
		w.hooks().Waiting(t.Context(), dibs.AcquireInfo{}, &dibs.HeldError{Name: "k"})
		time.Sleep(quietTime - time.Millisecond)
		stop()
		if len(out.lines) != 0 {
			t.Errorf("said %q", out.lines)
		}
	})
}

func TestNoSignalIsLostWhenAWaitEnds(t *testing.T) {
	t.Parallel()
	r := &runner{began: time.Now()}
	for range 1000 {
		in := &inbox{signals: make(chan os.Signal, 1)}
		_, done := r.waiting(in)
		in.signals <- os.Interrupt
		got := done()
		if got == nil {
			got = <-in.signals // still there: it is passed on, or ends the run
		}
		if got != os.Interrupt {
			t.Fatalf("signal %v", got)
		}
	}
}
