package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/runner"
)

// TestOneAtATime: two instances, 50 requests at once to each.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { command: " + f.lone("0.05", "x") + " }\n"
	a, b := f.start(jobs, 0), f.start(jobs, 0)
	var mu sync.Mutex
	var accepted []string
	var wg sync.WaitGroup
	for i := range 100 {
		r := []*runner.Runner{a, b}[i%2]
		wg.Go(func() {
			got, err := f.ask(r, runner.Request{Job: "a", Trigger: "http", By: "test"})
			var busy *runner.BusyError
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				accepted = append(accepted, got.Run.ID)
			case !errors.As(err, &busy):
				t.Error(err)
			case busy.RetryAfter <= 0 || busy.Holder == nil || !strings.Contains(busy.Holder.Note, "job a, run "):
				t.Errorf("%+v", busy.HeldError)
			}
		})
	}
	wg.Wait()
	if len(accepted) == 0 {
		t.Fatal("none was accepted")
	}
	for _, id := range accepted {
		if run := f.end(b, id); run.State != book.Succeeded || run.Fence == 0 || *run.Exit != 0 || run.Started.After(*run.Ended) {
			t.Errorf("%+v", run)
		}
	}
	if n := len(f.done()); n != len(accepted) {
		t.Errorf("%d were accepted, %d ran", len(accepted), n)
	}
	refused := 100 - len(accepted)
	again := len(f.log.with(`msg="not accepted"`)) // the store was too slow for them
	for _, want := range []struct {
		n     int
		words []string
	}{
		{100 + again, []string{"msg=attempt", "job=a", "lock=job:a", "trigger=http", "instance="}},
		{refused, []string{"msg=contention", "job=a", "lock=job:a", "holder=", "retry_after="}},
		{len(accepted), []string{"msg=completion", "job=a", "state=succeeded", "took=", "fence=", "run="}},
	} {
		if got := len(f.log.with(want.words...)); got != want.n {
			t.Errorf("%d lines have %v, want %d", got, want.words, want.n)
		}
	}
}

// TestTheQueueIsServedInOrder whichever instance a run came to.
func TestTheQueueIsServedInOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  'a/{n}': { lock: one, on_conflict: queue, command: " + f.lone("0.01", "{{.Params.n}}") + " }\n" +
		"  b: { on_conflict: queue, queue: { max: 30 }, params: { n: '[0-9]+' }, command: " + f.lone("0.01", "{{.Params.n}}") + " }\n"
	a, b := f.start(jobs, 0), f.start(jobs, 0)
	var want []string
	var last string
	for i := range 20 {
		r := []*runner.Runner{a, b}[i%2]
		got, err := f.ask(r, runner.Request{Job: "b", Trigger: "http", Params: map[string]string{"n": strconv.Itoa(i)}})
		if err != nil || got.Run.State != book.Queued || got.Position < 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		want, last = append(want, strconv.Itoa(i)), got.Run.ID
	}
	f.end(a, last)
	if got := f.done(); !slices.Equal(got, want) {
		t.Errorf("ran %v", got)
	}
}

func TestAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  a: { on_conflict: queue, queue: { max: 3 }, command: "+f.gated()+" }\n", 0)
	ids := []string{f.trigger(r, "a").ID}
	f.runs(r, ids[0])
	for range 3 {
		ids = append(ids, f.trigger(r, "a").ID)
	}
	for range 3 {
		var full *book.FullError
		if _, err := f.ask(r, runner.Request{Job: "a", Trigger: "http"}); !errors.As(err, &full) {
			t.Errorf("%v", err)
		}
	}
	f.open()
	for _, id := range ids {
		if run := f.end(r, id); run.State != book.Succeeded {
			t.Errorf("%+v", run)
		}
	}
}

// TestFiftyAtOnceAreAllQueued and each runs once.
func TestFiftyAtOnceAreAllQueued(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { on_conflict: queue, command: " + f.lone("0.01", "$DIBS_RUN_ID") + " }\n"
	a, b := f.start(jobs, 0), f.start(jobs, 0)
	ids := make([]string, 50)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = f.trigger([]*runner.Runner{a, b}[i%2], "a").ID })
	}
	wg.Wait()
	for _, id := range ids {
		f.end(a, id)
	}
	got := f.done()
	slices.Sort(got)
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		t.Errorf("accepted %v, ran %v", ids, got)
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { on_conflict: wait, wait: { max: 2, for: 2s }, command: " + f.gated() + " }\n  b: { lock: 'job:b', on_conflict: wait, command: [sh, -c, 'echo b'] }\n"
	a, b := f.start(jobs, 0), f.start(jobs, 0)
	first := f.trigger(a, "a")
	f.runs(a, first.ID)
	second := f.trigger(b, "a")
	if run := f.end(b, second.ID); run.State != book.Skipped || run.Reason != "held" || !strings.Contains(run.Holder, "job a") {
		t.Errorf("%+v", run)
	}
	f.open()
	if run := f.end(b, first.ID); run.State != book.Succeeded {
		t.Errorf("%+v", run)
	}
	for range 3 {
		if run := f.end(a, f.trigger(b, "b").ID); run.State != book.Succeeded {
			t.Errorf("%+v", run)
		}
	}
}

// TestTheRateLimitIsForAllTogether and what is refused by the lock uses none.
func TestTheRateLimitIsForAllTogether(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { rate_limit: { runs: 3, per: 1h }, at_least_for: 1h, lock: 'a', concurrency: 9, command: 'true' }\n  b: { rate_limit: { runs: 2, per: 1h }, command: " + f.gated() + " }\n"
	a, b := f.start(jobs, 0), f.start(jobs, 0)
	for i := range 5 {
		got, err := f.ask([]*runner.Runner{a, b}[i%2], runner.Request{Job: "a", Trigger: "http"})
		var le *runner.LimitError
		switch {
		case i < 3 && (err != nil || got.Quota == nil || got.Quota.Remaining != 2-i):
			t.Errorf("run %d: %+v, %v", i, got, err)
		case i >= 3 && (!errors.As(err, &le) || le.RetryAfter <= 19*time.Minute || le.RetryAfter > 20*time.Minute):
			t.Errorf("run %d: %v", i, err)
		}
	}
	one := f.trigger(a, "b")
	for range 5 {
		var busy *runner.BusyError
		if _, err := f.ask(b, runner.Request{Job: "b", Trigger: "http"}); !errors.As(err, &busy) {
			t.Errorf("%v", err)
		}
	}
	f.open()
	f.end(a, one.ID)
	f.end(b, f.trigger(b, "b").ID) // the second of two
}

// TestAKeyIsOneRun on whichever instance, and however often.
func TestAKeyIsOneRun(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"skip", "queue", "wait"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			jobs := "  a: { on_conflict: " + mode + ", rate_limit: { runs: 1000, per: 1s }, command: " + f.lone("0.05", "x") + " }\n"
			a, b := f.start(jobs, 0), f.start(jobs, 0)
			var mu sync.Mutex
			ids := make(map[string]int)
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					got, err := f.ask([]*runner.Runner{a, b}[i%2], runner.Request{Job: "a", Trigger: "http", Key: "k", Hash: "h"})
					var busy *runner.BusyError
					if err != nil && !errors.As(err, &busy) {
						t.Error(err)
					}
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						ids[got.Run.ID]++
					}
				})
			}
			wg.Wait()
			if len(ids) != 1 {
				t.Fatalf("%v", ids)
			}
			for id := range ids {
				f.end(a, id)
				got, err := f.ask(b, runner.Request{Job: "a", Trigger: "http", Key: "k", Hash: "h"})
				if err != nil || !got.Replayed || got.Run.ID != id {
					t.Errorf("%+v, %v", got, err)
				}
			}
			if _, err := f.ask(b, runner.Request{Job: "a", Trigger: "http", Key: "k", Hash: "other"}); !errors.Is(err, runner.ErrKeyReused) {
				t.Errorf("%v", err)
			}
			if n := len(f.done()); n != 1 {
				t.Errorf("it ran %d times", n)
			}
		})
	}
}

func TestRetriesAndTimeouts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start(`  flaky: { retries: { max: 3, backoff: 10ms }, command: [sh, -c, 'echo try $DIBS_ATTEMPT; test $DIBS_ATTEMPT = 3'] }
  hopeless: { retries: { max: 2, backoff: 10ms }, command: [sh, -c, 'exit 7'] }
  slow: { timeout: 100ms, command: [sleep, '60'] }
  none: { command: [no-such-program-here] }
`, 0)
	run := f.end(r, f.trigger(r, "flaky").ID)
	log, err := r.Book().Log(t.Context(), run.ID)
	if run.State != book.Succeeded || run.Attempt != 3 || run.Reason != "" || string(log.Data) != "try 1\ntry 2\ntry 3\n" {
		t.Errorf("%+v, %q, %v", run, log.Data, err)
	}
	if run := f.end(r, f.trigger(r, "hopeless").ID); run.State != book.Failed || run.Attempt != 3 || *run.Exit != 7 || run.Reason != "exit code 7" {
		t.Errorf("%+v", run)
	}
	if run := f.end(r, f.trigger(r, "slow").ID); run.State != book.Timeout {
		t.Errorf("%+v", run)
	}
	if run := f.end(r, f.trigger(r, "none").ID); run.State != book.Failed || !strings.Contains(run.Reason, "no-such-program-here") {
		t.Errorf("%+v", run)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { command: [sleep, '60'] }\n  b: { on_conflict: queue, command: [sleep, '60'] }\n"
	a, b := f.start(jobs, 0), f.start(jobs, 0)
	running := f.trigger(a, "a")
	if _, err := b.Cancel(t.Context(), running.ID, "ann"); err != nil { // it runs elsewhere
		t.Fatal(err)
	}
	if run := f.end(b, running.ID); run.State != book.Cancelled || run.Reason != "cancelled by ann" {
		t.Errorf("%+v", run)
	}
	if _, err := a.Cancel(t.Context(), running.ID, "ann"); !errors.Is(err, runner.ErrEnded) {
		t.Errorf("%v", err)
	}
	first, second := f.trigger(a, "b"), f.trigger(b, "b")
	f.runs(a, first.ID)
	if run, err := a.Cancel(t.Context(), second.ID, "ann"); err != nil || run.State != book.Cancelled {
		t.Errorf("%+v, %v", run, err)
	}
	if _, err := b.Cancel(t.Context(), first.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	f.end(a, first.ID)
	if ids, err := a.Book().Queue(t.Context(), "b"); err != nil || len(ids) != 0 {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { command: 'true', schedule: '@every 1s' }\n"
	a, b := f.start(jobs, 0), f.start(jobs, 0)
	if changed, err := a.Pause(t.Context(), "a", "ann", "maintenance"); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if changed, err := b.Pause(t.Context(), "a", "bob", ""); changed || err != nil {
		t.Error(changed, err)
	}
	var paused *runner.PausedError
	if _, err := f.ask(b, runner.Request{Job: "a", Trigger: "http", Key: "k"}); !errors.As(err, &paused) || paused.By != "ann" {
		t.Errorf("%v", err)
	}
	f.await("a tick is skipped", func() bool {
		for run := range a.Book().Runs(t.Context()) {
			if run.State == book.Skipped && run.Reason == "paused" && run.Tick != nil {
				return true
			}
		}
		return false
	})
	if changed, err := b.Resume(t.Context(), "a", "ann"); !changed || err != nil {
		t.Error(changed, err)
	}
	f.await("a tick is run", func() bool {
		for run := range a.Book().Runs(t.Context()) {
			if run.State == book.Succeeded {
				return true
			}
		}
		return false
	})
}

// TestALostLockEndsTheRun: an operator takes it away.
func TestALostLockEndsTheRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  a: { ttl: 2s, retries: { max: 3 }, command: [sleep, '60'] }\n", 0)
	run := f.trigger(r, "a")
	for h, err := range r.Client().Holders(t.Context(), "job:a") {
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Client().Revoke(t.Context(), revocation(h)); err != nil {
			t.Fatal(err)
		}
	}
	if run := f.end(r, run.ID); run.State != book.Lost || run.RetriedAs != "" || !strings.Contains(run.Reason, "revoked") {
		t.Errorf("%+v", run)
	}
}

// TestDrain: what runs may end, what is queued is the others', and nothing new is
// begun.
func TestDrain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { on_conflict: queue, command: [sh, -c, 'cd " + f.dir + "; until [ -e gate ]; do sleep 0.02; done; echo $DIBS_RUN_ID >>done'] }\n  b: { command: [sleep, '600'], retries: { max: 1 }, grace: 50ms }\n"
	a := f.start(jobs, 0)
	ids := []string{f.trigger(a, "a").ID, f.trigger(a, "a").ID, f.trigger(a, "a").ID}
	long := f.trigger(a, "b")
	f.runs(a, ids[0])
	b := f.start(jobs, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drained := make(chan struct{})
	go func() { // ends with what a has in hand
		defer close(drained)
		a.Drain(ctx)
	}()
	f.await("it takes nothing more", func() bool { return errors.Is(a.Ready(), runner.ErrDraining) })
	f.open()
	f.end(b, ids[0])
	cancel() // the other has had its time
	<-drained
	if _, err := f.ask(a, runner.Request{Job: "a"}); !errors.Is(err, runner.ErrDraining) || !errors.Is(a.Ready(), runner.ErrDraining) {
		t.Errorf("%v, %v", err, a.Ready())
	}
	run := f.end(b, long.ID)
	if run.State != book.Lost || run.RetriedAs == "" || !strings.Contains(run.Reason, "shut down") {
		t.Errorf("%+v", run)
	}
	ctx, cancel = contextFor(t, 2*time.Minute) // for longer than a TTL: an ask without an answer may land until then
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Error(err)
	}
	for _, id := range ids {
		if run := f.end(b, id); run.State != book.Succeeded {
			t.Errorf("%+v", run)
		}
	}
	if got := f.done(); !slices.Equal(got, ids) {
		t.Errorf("ran %v, want %v", got, ids)
	}
	f.await("the other runs it again", func() bool {
		next, _ := b.Book().Run(t.Context(), run.RetriedAs)
		return next.State == book.Running && next.Attempt == 2 && next.RetryOf == run.ID && next.Instance == b.ID()
	})
	if all, err := b.Book().Instances(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  a: { command: 'true' }\n", 0)
	if err := r.Reload(parse(t, "version: 1\njobs: { b: { command: 'true', schedule: '@every 1s' } }")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ask(r, runner.Request{Job: "a"}); !errors.Is(err, runner.ErrNoJob) {
		t.Errorf("%v", err)
	}
	f.await("the new job ticks", func() bool {
		for run := range r.Book().Runs(t.Context()) {
			return run.Job == "b"
		}
		return false
	})
	for _, text := range []string{
		"version: 1\nstore: {namespace: x}\njobs: { b: { command: 'true' } }",
		"version: 1\nserver: {listen: '127.0.0.1:1'}\njobs: { b: { command: 'true' } }",
		"version: 1\njobs: { b: { command: 'true', ttl: 1ms, grace: 0.1ms } }",
	} {
		c, err := tryParse(text)
		if err != nil {
			continue
		}
		if err := r.Reload(c); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestHistoryIsBounded also in what it leaves in the store.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  a: { command: [echo, hello], history: { max_runs: 3 } }\n", 0)
	var ids []string
	for range 6 {
		run := f.trigger(r, "a")
		f.end(r, run.ID)
		f.await("the lock is free", func() bool {
			for range r.Client().Holders(t.Context(), "job:a") {
				return false
			}
			return true
		})
		ids = append(ids, run.ID)
	}
	n := 0
	for run, err := range r.Book().Runs(t.Context()) {
		if err != nil || !slices.Contains(ids[3:], run.ID) {
			t.Error(run.ID, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d runs are kept", n)
	}
	for i, id := range ids {
		if log, err := r.Book().Log(t.Context(), id); err != nil || (len(log.Data) > 0) != (i >= 3) {
			t.Errorf("the log of run %d is %q, %v", i, log.Data, err)
		}
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  a: { concurrency: 2, command: "+f.gated()+" }\n", 0)
	one, two := f.trigger(r, "a"), f.trigger(r, "a")
	var busy *runner.BusyError
	if _, err := f.ask(r, runner.Request{Job: "a"}); !errors.As(err, &busy) {
		t.Errorf("%v", err)
	}
	f.open()
	for _, run := range []book.Run{one, two} {
		if got := f.end(r, run.ID); got.State != book.Succeeded {
			t.Errorf("%+v", got)
		}
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  'a/{x}': { params: { y: '[0-9]+' }, command: [echo, '{{.Params.x}}{{.Params.y}}'] }\n", 0)
	for _, id := range []string{"", "a", "a/", "a/../b", "a/-x", "a/x/y", "a/{x}", "a/x\n", fmt.Sprintf("a/%0200d", 1)} {
		if _, err := f.ask(r, runner.Request{Job: id}); !errors.Is(err, runner.ErrNoJob) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, params := range []map[string]string{{"y": "a"}, {"x": "1"}, {"z": "1"}, {"y": "1\n"}} {
		var pe *runner.ParamError
		if _, err := f.ask(r, runner.Request{Job: "a/x", Params: params}); !errors.As(err, &pe) {
			t.Errorf("%v: %v", params, err)
		}
	}
}

// TestAnInstanceHasSoManyRunsInHand and no more, whatever ids it is asked for.
func TestAnInstanceHasSoManyRunsInHand(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  '{id}': { command: [sleep, '60'], grace: 50ms }\nserver: { max_runs: 3 }\n", 0)
	for i := range 5 {
		got, err := f.ask(r, runner.Request{Job: "job" + strconv.Itoa(i), Trigger: "http"})
		if i < 3 && (err != nil || got.Run.Trace == "") || i >= 3 && !errors.Is(err, runner.ErrCrowded) {
			t.Errorf("run %d: %+v, %v", i, got.Run, err)
		}
		f.await("it is in hand", func() bool { return len(f.log.with("msg=started")) == min(i+1, 3) })
	}
}

// TestACommandHasTheEnvironmentAndTheRun: nothing of the runner's own is lost.
func TestACommandHasTheEnvironmentAndTheRun(t *testing.T) {
	t.Setenv("DIBS_STORE_URL", "sqlite:///elsewhere.db")
	t.Setenv("DIBS_FENCE", "outer")
	t.Setenv("TRACEPARENT", "outer")
	f := newFleet(t)
	r := f.start("  'a/{x}': { command: [sh, -c, 'env | grep -E \"^(DIBS_|TRACEPARENT)\" | sort'] }\n", 0)
	run := f.end(r, f.trigger(r, "a/b").ID)
	log, err := r.Book().Log(t.Context(), run.ID)
	want := fmt.Sprintf("DIBS_ATTEMPT=1\nDIBS_FENCE=%d\nDIBS_JOB=a/b\nDIBS_KEY=job:a/b\nDIBS_KEYS=job:a/b\nDIBS_RUN_ID=%s\nDIBS_STORE_URL=sqlite:///elsewhere.db\nDIBS_TRIGGER=http\nDIBS_TTL=30s\nTRACEPARENT=%s\n", run.Fence, run.ID, run.Trace)
	if err != nil || string(log.Data) != want {
		t.Errorf("%s, want %s, %v", log.Data, want, err)
	}
}

// TestARefusalByTheLimitFreesTheLock at once, whatever at_least_for says.
func TestARefusalByTheLimitFreesTheLock(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  a: { concurrency: 2, at_least_for: 1h, rate_limit: { runs: 1, per: 1h }, command: 'true' }\n", 0)
	f.end(r, f.trigger(r, "a").ID)
	for range 3 {
		var limited *runner.LimitError
		if _, err := f.ask(r, runner.Request{Job: "a", Trigger: "http"}); !errors.As(err, &limited) {
			t.Errorf("%v", err)
		}
	}
}

// TestARequestSaysWhatItIsFor, the same in each of its attempts.
func TestARequestSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Dibs-Run-Id"), r.Header.Get("Dibs-Job"), r.Header.Get("Dibs-Fence"), r.Header.Get("Traceparent"), r.Header.Get("X-Who"), string(body)}, " "))
		if len(got) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	r := f.start("  'a/{x}': { retries: { max: 1, backoff: 10ms }, http: { method: PUT, url: '"+server.URL+"/{{.Params.x}}', headers: { X-Who: '{{.JobID}}' }, body: 'attempt {{.Attempt}}', expect: { status: [204] }, send_fence: true } }\n", 0)
	run := f.end(r, f.trigger(r, "a/b").ID)
	if run.State != book.Succeeded || run.Attempt != 2 || run.Status != 204 || run.Exit != nil {
		t.Errorf("%+v", run)
	}
	for i, line := range got {
		if want := fmt.Sprintf("PUT /b %s %s a/b %d %s a/b attempt %d", run.ID, run.ID, run.Fence, run.Trace, i+1); line != want {
			t.Errorf("%s, want %s", line, want)
		}
	}
}
