package drivertest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

const (
	// many is how many leases one process is to hold with ease.
	many = 10_000
	// manyTTL is their TTL, and manyTTLs how many of it they are held.
	manyTTL  = 3 * time.Second
	manyTTLs = 10
	// manyBatch is how many are renewed by one call at least.
	manyBatch = 1_000
	// maxHeap is how much heap one of them may take, in bytes: the lease's, and
	// whatever the store's client keeps for it.
	maxHeap = 600
)

// Many has one client hold 10,000 leases for ten TTLs: none is lost, no
// goroutine is there for one alone, and they are renewed in batches.
func Many(t *testing.T, h Harness) {
	inside(t, h, func(t *testing.T, s *Stage) {
		var calls Recorder
		c := manyClient(t, Wrap(s.Open(t), calls.Around))
		before, start := runtime.NumGoroutine(), time.Now()
		leases := lockMany(t, c)
		if n := runtime.NumGoroutine() - before; n > many/100 {
			t.Errorf("%d goroutines more with %d leases", n, many)
		}
		time.Sleep(manyTTLs * manyTTL)
		lost := 0
		for _, l := range leases {
			if err := l.Check(); err != nil {
				if lost++; lost == 1 {
					t.Errorf("a lease was lost: %v", err)
				}
			}
		}
		if lost > 0 {
			t.Errorf("%d of %d leases were lost", lost, many)
		}
		renewed, answered := 0, 0
		for _, r := range calls.Calls(OpRenew) {
			if r.Err == nil { // an unknown one is asked again
				answered++
				renewed += len(r.Claims)
			}
		}
		// One call is enough for every thousand leases each third of a TTL, begun
		// ones included.
		batch := min(s.Facts.MaxBatch, manyBatch)
		if most := int(time.Since(start)/(manyTTL/3)+1) * (many/batch + 1); answered > most {
			t.Errorf("%d renewal calls for %d proofs; at most %d were expected", answered, renewed, most)
		}
		if least := many * manyTTLs; renewed < least {
			t.Errorf("%d proofs were asked for in %d TTLs of %d leases", renewed, manyTTLs, many)
		}
		t.Logf("%d leases for %d TTLs of %v: %d lost, %d renewal calls for %d proofs", many, manyTTLs, manyTTL, lost, answered, renewed)
		releaseMany(t, leases)
	})
}

// HeapPerLease measures what a lease takes of the heap. Nothing else may run in
// the process meanwhile.
func HeapPerLease(t *testing.T, h Harness) {
	s := newStage(t, h)
	c := manyClient(t, s.Open(t))
	l, err := c.Mutex("first").Lock(t.Context()) // what is there once
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	leases := lockMany(t, c)
	per := float64(heap()-before) / many
	t.Logf("%.0f bytes of heap a lease", per)
	if per > maxHeap {
		t.Errorf("%.0f bytes of heap a lease, want at most %d", per, maxHeap)
	}
	releaseMany(t, append(leases, l))
}

func manyClient(t *testing.T, store driver.Store) *dibs.Client {
	t.Helper()
	c, err := dibs.New(store, &dibs.Options{Settings: dibs.Settings{TTL: manyTTL, Note: "one of many"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// lockMany locks many names, as many at once as a busy process would.
func lockMany(t *testing.T, c *dibs.Client) []*dibs.Lease {
	t.Helper()
	leases := make([]*dibs.Lease, many)
	inParallel(func(i int) {
		var err error
		if leases[i], err = c.Mutex(fmt.Sprintf("many/%d", i)).Lock(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return leases
}

func releaseMany(t *testing.T, leases []*dibs.Lease) {
	t.Helper()
	inParallel(func(i int) {
		if err := leases[i].Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// inParallel calls f for each of many, on 64 goroutines.
func inParallel(f func(i int)) {
	const workers = 64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { // ends with its share
			for i := w; i < many; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}

// heap is what is in use after everything unused was collected.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // finalizers and pools let go in the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
