package fence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dibslock/dibs/fence"
)

// noWrite must not be called.
func noWrite(t *testing.T) func() error {
	return func() error {
		t.Helper()
		t.Error("the write was let through")
		return nil
	}
}

func nothing() error { return nil }

// TestMemoryPauseStory: the old holder reads 100 and stands still; the new one adds
// 50; the old one writes back 100 - 30. Without the guard that loses the 50.
func TestMemoryPauseStory(t *testing.T) {
	t.Parallel()
	old, new := fence.Of("ann", 41), fence.Of("ann", 42)
	for _, guarded := range []bool{true, false} {
		var m fence.Memory
		do := func(lease fence.Fenced, fn func()) error {
			if !guarded {
				fn()
				return nil
			}
			return m.Do(t.Context(), lease, func() error { fn(); return nil })
		}
		balance, oldSaw := 100, 0
		must(t, do(old, func() { oldSaw = balance }))
		must(t, do(new, func() { balance += 50 }))
		err := do(old, func() { balance = oldSaw - 30 })
		if guarded {
			stale(t, err, fence.StaleError{Name: "ann", Offered: 41, Newest: 42})
		}
		if want := map[bool]int{true: 150, false: 70}[guarded]; balance != want {
			t.Errorf("guarded=%v: the balance is %d, want %d", guarded, balance, want)
		}
	}
}

// TestMemoryFirstContactRaises: a read of the newer holder is enough.
func TestMemoryFirstContactRaises(t *testing.T) {
	t.Parallel()
	var m fence.Memory
	must(t, m.Do(t.Context(), fence.Of("a", 7), nothing))
	must(t, m.Do(t.Context(), fence.Of("a", 8), nothing)) // only reads
	stale(t, m.Do(t.Context(), fence.Of("a", 7), noWrite(t)), fence.StaleError{Name: "a", Offered: 7, Newest: 8})
	must(t, m.Do(t.Context(), fence.Of("a", 8), nothing))
	must(t, m.Do(t.Context(), fence.Of("b", 1), nothing))
}

func TestMemoryRefusesWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	var m fence.Memory
	err := m.Do(t.Context(), fence.Of("a", 0), noWrite(t))
	if !errors.Is(err, fence.ErrNoFence) || !strings.Contains(err.Error(), "semaphores") {
		t.Errorf("fence 0: %v, want an ErrNoFence that says why", err)
	}
	for _, bad := range []fence.Fenced{fence.Of("", 1), fence.Of("a", fence.MaxToken+1), fence.Of(strings.Repeat("x", 513), 1)} {
		if err := m.Do(t.Context(), bad, noWrite(t)); err == nil {
			t.Errorf("%.20q %d was let through", bad.Name(), bad.Fence())
		}
	}
	must(t, m.Do(t.Context(), fence.Of("a", 1), nothing)) // none of them counted
}

func TestMemoryReturnsWhatTheWriteReturns(t *testing.T) {
	t.Parallel()
	var m fence.Memory
	full := errors.New("disk full")
	if err := m.Do(t.Context(), fence.Of("a", 1), func() error { return full }); err != full {
		t.Errorf("%v, want the write's own error", err)
	}
	func() {
		defer func() { recover() }()
		m.Do(t.Context(), fence.Of("a", 1), func() error { panic("boom") })
	}()
	must(t, m.Do(t.Context(), fence.Of("a", 1), nothing)) // the panic left nothing locked
}

// TestMemoryNewerWaitsForTheWriteInProgress: or it would be let in between the
// older's check and its write.
func TestMemoryNewerWaitsForTheWriteInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m fence.Memory
		goOn := make(chan struct{})
		var order []string // one at a time: what the test is about
		var wg sync.WaitGroup
		wg.Go(func() {
			m.Do(t.Context(), fence.Of("a", 1), func() error {
				<-goOn
				order = append(order, "older")
				return nil
			})
		})
		synctest.Wait()
		wg.Go(func() {
			m.Do(t.Context(), fence.Of("a", 2), func() error {
				order = append(order, "newer")
				return nil
			})
		})
		synctest.Wait()
		impatient, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("no time"))
		if err := m.Do(impatient, fence.Of("a", 2), noWrite(t)); err == nil || err.Error() != "no time" {
			t.Errorf("%v, want the ctx's cause", err)
		}
		must(t, m.Do(t.Context(), fence.Of("b", 1), nothing)) // other names don't wait
		close(goOn)
		wg.Wait()
		if !slices.Equal(order, []string{"older", "newer"}) {
			t.Errorf("order %v", order)
		}
	})
}

// TestMemoryNeverGoesBack: accepted tokens never decrease, in random interleavings.
func TestMemoryNeverGoesBack(t *testing.T) {
	t.Parallel()
	var m fence.Memory
	var mu sync.Mutex // guards notes
	notes := map[string][]uint64{}
	neverGoesBack(t, func(lease fence.Fenced) error {
		return m.Do(t.Context(), lease, func() error {
			mu.Lock()
			defer mu.Unlock()
			notes[lease.Name()] = append(notes[lease.Name()], lease.Fence())
			return nil
		})
	}, func(name string) []uint64 { return notes[name] })
}

// neverGoesBack has many holders of three names, some of them long gone, write at
// random; write notes the token where it is accepted. It fails the test unless the
// notes of each name are in order.
func neverGoesBack(t *testing.T, write func(lease fence.Fenced) error, notes func(name string) []uint64) {
	t.Helper()
	names := []string{"a", "b", "{c}"}
	var granted [3]atomic.Uint64
	var refused atomic.Int64
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() { // ends after its turns
			random := rand.New(rand.NewPCG(seed, 3))
			for range 200 {
				i := random.IntN(len(names))
				token := granted[i].Add(uint64(random.IntN(2)))
				token = max(1, token-min(token, uint64(random.IntN(3))))
				for range random.IntN(4) {
					runtime.Gosched()
				}
				err := write(fence.Of(names[i], token))
				switch {
				case errors.Is(err, fence.ErrStale):
					refused.Add(1)
				case err != nil:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		if tokens := notes(name); !slices.IsSorted(tokens) || len(tokens) == 0 {
			t.Errorf("%s was written under the tokens %v", name, tokens)
		}
	}
	if refused.Load() == 0 {
		t.Error("nobody was refused: the test shows nothing")
	}
}
