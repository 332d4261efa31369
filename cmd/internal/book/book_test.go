package book_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/memlock"
)

// forgetful does what it is asked and loses every third answer.
type forgetful struct {
	driver.Records
	calls atomic.Int64
}

var errLost = errors.New("the connection broke")

func (f *forgetful) lose() bool { return f.calls.Add(1)%3 == 0 }

func (f *forgetful) Put(ctx context.Context, r driver.Record) (uint64, error) {
	v, err := f.Records.Put(ctx, r)
	if err == nil && f.lose() {
		return 0, errLost
	}
	return v, err
}

func (f *forgetful) Delete(ctx context.Context, key string, version uint64) error {
	err := f.Records.Delete(ctx, key, version)
	if err == nil && f.lose() {
		return errLost
	}
	return err
}

func open(t *testing.T) *book.Book {
	t.Helper()
	store := memlock.New(memlock.Options{})
	t.Cleanup(func() { _ = store.Close() })
	return book.New(&forgetful{Records: store}, "test", nil)
}

func run(job string) book.Run {
	return book.Run{ID: book.NewID(), Job: job, State: book.Queued, Created: time.Now().UTC(), Keep: time.Hour}
}

// each runs f n times side by side.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func TestEveryRunIsQueuedOnceAndTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	b := open(t)
	var full, in atomic.Int64
	each(30, func(int) {
		_, err := b.Enqueue(t.Context(), run("a"), 20)
		var fe *book.FullError
		switch {
		case errors.As(err, &fe):
			full.Add(1)
		case err == nil:
			in.Add(1)
		default:
			t.Error(err)
		}
	})
	ids, err := b.Queue(t.Context(), "a")
	if err != nil || in.Load() != 20 || full.Load() != 10 || len(ids) != 20 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 20 {
		t.Fatalf("%d in, %d refused, %d in the queue, %v", in.Load(), full.Load(), len(ids), err)
	}
	each(20, func(i int) {
		if err := b.Dequeue(t.Context(), "a", ids[i]); err != nil {
			t.Error(err)
		}
	})
	if ids, _ := b.Queue(t.Context(), "a"); len(ids) != 0 {
		t.Errorf("%v are left", ids)
	}
}

// TestATickIsClaimedOnce also when the winner doesn't hear that it won.
func TestATickIsClaimedOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	first, _, err := b.Tick(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	last := first.Last
	for i := range 20 {
		at := last.Add(time.Second)
		var won atomic.Int64
		each(8, func(n int) {
			mine, err := b.Claim(t.Context(), "a", last, at, fmt.Sprint(i, n))
			if err != nil {
				t.Error(err)
			}
			if mine {
				won.Add(1)
			}
		})
		if won.Load() != 1 {
			t.Fatalf("the tick %d has %d owners", i, won.Load())
		}
		last = at
	}
	if mine, _ := b.Claim(t.Context(), "a", first.Last, first.Last.Add(time.Second), "late"); mine {
		t.Error("a tick of the past was claimed again")
	}
}

// TestAStaleRunnerCantOverwriteItsSuccessor is law 47 where it counts.
func TestAStaleRunnerCantOverwriteItsSuccessor(t *testing.T) {
	t.Parallel()
	b := open(t)
	r := run("a")
	r.State, r.Lock, r.Token = book.Running, "job:a", 7
	if err := b.Add(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ChangeUnder(t.Context(), r.ID, "job:a", 9, func(r *book.Run) error {
		r.State = book.Lost
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err := b.ChangeUnder(t.Context(), r.ID, "job:a", 7, func(r *book.Run) error {
		r.State = book.Succeeded
		return nil
	})
	if !errors.Is(err, driver.ErrFenced) {
		t.Errorf("%v", err)
	}
	if got, _ := b.Run(t.Context(), r.ID); got.State != book.Lost {
		t.Errorf("it is %s", got.State)
	}
}

func TestRunsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	b := open(t)
	var want []string
	for i := range 10 {
		r := run(fmt.Sprint("job", i%2))
		if err := b.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := b.Add(t.Context(), r); err != nil {
			t.Errorf("added again: %v", err)
		}
		old, err := b.Note(t.Context(), r, 3)
		if err != nil || (i < 6) != (old == nil) {
			t.Errorf("run %d: %v are too many, %v", i, old, err)
		}
		want = append(want, r.ID)
	}
	slices.Reverse(want)
	var got []string
	for r, err := range b.Runs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	j, _, err := b.Job(t.Context(), "job1")
	if err != nil || !slices.Equal(j.Runs, []string{want[0], want[2], want[4]}) {
		t.Errorf("%v, %v", j.Runs, err)
	}
	if err := b.Remove(t.Context(), want[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(t.Context(), want[0]); !errors.Is(err, book.ErrNone) {
		t.Errorf("%v", err)
	}
}

func TestAKeyStartsOneRun(t *testing.T) {
	t.Parallel()
	b := open(t)
	var mu sync.Mutex
	firsts := make(map[book.Key]bool)
	each(8, func(i int) {
		k, err := b.Use(t.Context(), "a", "k\x00ey", book.Key{Run: fmt.Sprint(i)}, time.Hour)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		firsts[k] = true
	})
	if len(firsts) != 1 {
		t.Errorf("%v", firsts)
	}
}

func TestIDsThatAreNone(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, id := range []string{"", "x", "../job/a", "urn:uuid:0190163d-8694-739b-aea5-966c26f8ad91", "0190163D-8694-739B-AEA5-966C26F8AD91"} {
		if _, err := b.Run(t.Context(), id); !errors.Is(err, book.ErrNone) {
			t.Errorf("%q: %v", id, err)
		}
		if l, err := b.Log(t.Context(), id); !errors.Is(err, book.ErrNone) {
			t.Errorf("the log of %q: %v, %v", id, l, err)
		}
	}
}

func TestInstances(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, id := range []string{"one", "two"} {
		if err := b.Join(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Beat(t.Context(), book.Instance{ID: id, Beat: 3, Active: []book.Active{{Run: "r", Token: 1 << 60}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Order(t.Context(), "two", "r", "ann"); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Orders(t.Context(), "two"); err != nil || len(got) != 1 && got != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, _ := b.Orders(t.Context(), "two"); got != nil {
		t.Errorf("taken twice: %v", got)
	}
	if err := b.Forget(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	all, err := b.Instances(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != "two" || all[0].Active[0].Token != 1<<60 {
		t.Errorf("%+v, %v", all, err)
	}
}
