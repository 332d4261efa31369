package runner_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/runner"
)

// ticked returns the runs of a job that are of ticks, the oldest first.
func (f *fleet) ticked(r *runner.Runner, job string) (runs []book.Run) {
	f.Helper()
	for run, err := range r.Book().Runs(f.Context()) {
		if err != nil {
			f.Fatal(err)
		}
		if run.Job == job && run.Tick != nil {
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b book.Run) int { return a.Tick.Compare(*b.Tick) })
	return runs
}

// TestTortureTicks: each tick happens once, on five instances whose clocks are up
// to four seconds apart, with a job that is shorter than that. DIBS_TORTURE_FOR says
// for how long.
func TestTortureTicks(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	ticks := 30
	if text := os.Getenv("DIBS_TORTURE_FOR"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		ticks = int(d / time.Second)
	}
	jobs := "  a: { schedule: '@every 1s', command: " + f.lone("0.02", "$DIBS_RUN_ID") + " }\n"
	var last *runner.Runner
	for i := range 5 {
		last = f.start(jobs, time.Duration(i-2)*time.Second)
	}
	// So many are decided and, however slow the machine is, some of them are run.
	for n := 0; n < ticks/2 || len(f.ticked(last, "a")) < ticks; {
		f.await("the next tick is run", func() bool { return len(f.done()) > n })
		n = len(f.done())
	}
	var runs []book.Run
	f.await("each tick is told of once", func() bool { // the last may be about to be
		runs = f.ticked(last, "a")[:ticks]
		return untold(runs) == ""
	}, func() string { return untold(runs) })
	ran := make(map[string]int)
	for _, id := range f.done() { // and no two at once
		ran[id]++
	}
	for _, run := range runs {
		if run.State == book.Succeeded && ran[run.ID] != 1 {
			t.Errorf("the tick %v was run %d times", run.Tick, ran[run.ID])
		}
	}
}

// untold says which tick isn't told of once; "": none. Those that were missed,
// under load, are told of by one record for all.
func untold(runs []book.Run) string {
	for i, run := range runs[1:] {
		apart := run.Tick.Sub(*runs[i].Tick)
		if run.State == book.Missed && run.Count > 1 {
			apart -= time.Duration(run.Count-1) * time.Second
		}
		if apart != time.Second {
			return fmt.Sprintf("the tick %v follows %v", run.Tick, runs[i].Tick)
		}
	}
	return ""
}

// TestAClockThatIsFarAheadDecidesNothing: it would use up the ticks of the others.
func TestAClockThatIsFarAheadDecidesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { schedule: '@every 1s', command: 'true' }\n"
	f.start(jobs, 24*time.Hour)
	right := f.start(jobs, 0)
	f.await("ticks happen", func() bool { return len(f.ticked(right, "a")) >= 2 })
	for _, run := range f.ticked(right, "a") {
		if ahead := time.Until(*run.Tick); ahead > 4*time.Second {
			t.Errorf("a tick %v ahead was decided", ahead)
		}
	}
	f.await("it says that its clock is wrong", func() bool { return len(f.log.with("this clock is ahead")) > 0 })
}

// TestWhatNobodySaw: no instance for an hour, by the clock of one that comes.
func TestWhatNobodySaw(t *testing.T) {
	t.Parallel()
	for missed, want := range map[string][]string{
		"skip": {"missed 3"},
		"once": {"missed 2", "succeeded 0"},
		"all":  {"succeeded 0", "succeeded 0", "succeeded 0"},
	} {
		t.Run(missed, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			r := f.start("  other: { command: 'true' }\n", 0)
			// The last tick was forty minutes ago.
			now := time.Now().UTC()
			from, _, err := r.Book().Tick(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			at := now.Truncate(10 * time.Minute).Add(-40 * time.Minute)
			if mine, err := r.Book().Claim(t.Context(), "a", from.Last, at, "before"); !mine || err != nil {
				t.Fatal(mine, err)
			}
			// Three ticks, each at a minute of its own, that come again in a year.
			var list []string
			for i := range 3 {
				list = append(list, at.Add(time.Duration(i+1)*10*time.Minute).Format("'4 15 2 1 *'"))
			}
			if err := r.Reload(parse(t, "version: 1\njobs:\n  a: { missed: "+missed+", schedule: ["+strings.Join(list, ", ")+"], command: 'true' }\n")); err != nil {
				t.Fatal(err)
			}
			var got []string
			f.await("all is decided", func() bool {
				got = nil
				for _, run := range f.ticked(r, "a") {
					if run.State.Ended() {
						got = append(got, string(run.State)+" "+string(rune('0'+run.Count)))
					}
				}
				return len(got) >= len(want)
			})
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
