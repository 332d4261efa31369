package drivertest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Schedules runs as many short tortures as DIBS_TORTURE_SCHEDULES says, some side
// by side, with the seeds from DIBS_TORTURE_SEED on, and skips the test if that is
// not set. In every spell of faults a client is killed, as kill -9 does, and
// another begins in its place; servers are killed too, and started again with
// their data, where the storage can do that. Progress is judged in bubbles alone,
// where time is exact. It ends after the first schedule that
// is convicted, and says how to play it again. How far it is, and what there was
// in the end, goes to standard error.
func Schedules(t *testing.T, h Harness) {
	t.Helper()
	text := os.Getenv("DIBS_TORTURE_SCHEDULES")
	if text == "" {
		t.Skip("DIBS_TORTURE_SCHEDULES is not set")
	}
	runs, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DIBS_TORTURE_SCHEDULES: %v", err)
	}
	seed, err := strconv.ParseUint(cmpOr(os.Getenv("DIBS_TORTURE_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatalf("DIBS_TORTURE_SEED: %v", err)
	}
	o, atOnce := TortureOptions{Seed: seed, For: 30 * time.Second, Kills: true}, runtime.GOMAXPROCS(0)
	if !h.Bubble { // there a schedule mostly waits
		o.For, o.Lives, o.Unhurried, atOnce = 2*time.Second, 500*time.Millisecond, true, schedulesAtOnce
	}
	s := &schedules{t: t, h: h, o: o.defaults(h.Bubble), runs: runs, begun: time.Now()}
	over := make(chan struct{})
	var reports, workers sync.WaitGroup
	reports.Go(func() { s.report(over) }) // ends with the schedules
	for range atOnce {
		workers.Go(s.work) // ends with them, or with the first that fails
	}
	workers.Wait()
	close(over)
	reports.Wait()
	fmt.Fprintf(os.Stderr, "schedules of %s: %v; all: %v; faults: %v\n", h.Name, s, &s.total, &s.faults)
}

// schedulesAtOnce is how many run side by side in real time.
const schedulesAtOnce = 8

// schedules are many short tortures under way.
type schedules struct {
	t             *testing.T
	h             Harness
	o             TortureOptions
	runs          uint64
	begun         time.Time
	begins, ended atomic.Uint64
	total, faults tally
}

// work runs one schedule after the other.
func (s *schedules) work() {
	for i := s.begins.Add(1); i <= s.runs && !s.t.Failed(); i = s.begins.Add(1) {
		o := s.o
		o.Seed += i - 1
		s.t.Run(fmt.Sprintf("seed %d", o.Seed), func(t *testing.T) {
			inside(t, s.h, func(t *testing.T, stage *Stage) { tortureOnce(t, stage, o, &s.total, &s.faults) })
		})
		s.ended.Add(1)
	}
}

// report tells now and then how far it is, until over.
func (s *schedules) report(over <-chan struct{}) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(os.Stderr, "schedules of %s, so far: %v\n", s.h.Name, s)
		case <-over:
			return
		}
	}
}

// String counts what matters most.
func (s *schedules) String() string {
	held := 0
	for _, what := range []string{"granted", "led", "several", "runs"} {
		held += s.total.get(what)
	}
	return fmt.Sprintf("%d of %d by the seeds from %d on, in %v: %d acquisitions, %d crashes, %d restarts of servers, %d violations",
		s.ended.Load(), s.runs, s.o.Seed, time.Since(s.begun).Round(time.Second),
		held, s.faults.get("kill"), s.faults.get("restart"), s.total.get("violations"))
}

// OpenURL opens another client of the store at rawURL, which is closed when the
// test ends. A server that gives no answer, because it is starting or busy, is asked
// again for a minute.
func OpenURL(t testing.TB, rawURL string) driver.Store {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s, err := driver.Open(context.Background(), rawURL)
		if err == nil {
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			return s
		}
		if driver.Certain(err) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
