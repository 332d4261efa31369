package redislock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// BenchmarkPair has a lock and its unlock by the raw floor (SET NX PX and a
// compare-and-delete script, over a client with the store's own options), by the
// store alone, and by a whole mutex, each with a ctx that can end. The three take
// turns, so that what else the machine does hits them alike; what is reported are
// the medians of each turn's ratio to the floor.
func BenchmarkPair(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) { benchPair(b, goroutines) })
	}
}

func benchPair(b *testing.B, goroutines int) {
	r := servers.Redis(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	params := space()
	ways := []struct {
		name string
		pair func(name string) error
	}{
		{"floor", floor(b, ctx, r.Addr())},
		{"store", storePair(ctx, open(b, r.Addr(), params))},
		{"mutex", mutexPair(b, ctx, open(b, r.Addr(), params))},
	}
	const turn = 512
	names := make([]string, goroutines)
	for i := range names {
		names[i] = fmt.Sprintf("orders/%d", i)
	}
	took, spent := make([][]float64, len(ways)), make([][]float64, len(ways))
	allocs := make([]uint64, len(ways))
	turns := 0
	for b.Loop() {
		for i, w := range ways {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began, cpu := time.Now(), cpuTime()
			if err := share(goroutines, turn, names, w.pair); err != nil {
				b.Fatal(w.name, err)
			}
			took[i] = append(took[i], float64(time.Since(began)))
			spent[i] = append(spent[i], float64(cpuTime()-cpu))
			runtime.ReadMemStats(&after)
			allocs[i] += after.Mallocs - before.Mallocs
		}
		turns++
	}
	for i, w := range ways {
		b.ReportMetric(ratio(took[i], took[0]), w.name+"-x")
		b.ReportMetric(ratio(spent[i], spent[0]), w.name+"-cpu-x")
		b.ReportMetric(float64(allocs[i])/float64(turns*turn), w.name+"-allocs")
	}
	slices.Sort(took[0])
	b.ReportMetric(took[0][turns/2]/turn, "floor-ns/pair")
	b.ReportMetric(0, "ns/op")
}

// share has goroutines make n pairs together, each on a name of its own.
func share(goroutines, n int, names []string, pair func(string) error) error {
	if goroutines == 1 {
		for range n {
			if err := pair(names[0]); err != nil {
				return err
			}
		}
		return nil
	}
	var all sync.WaitGroup
	errs := make(chan error, goroutines)
	for _, name := range names {
		all.Go(func() {
			for range n / goroutines {
				if err := pair(name); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func floor(b *testing.B, ctx context.Context, addr string) func(string) error {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true,
		AlwaysPipelining: true, DisableRetry: true, PipelineMultiplex: -1,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	del := rueidis.NewLuaScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`)
	return func(name string) error {
		id := drivertest.NewID()
		if err := c.Do(ctx, c.B().Set().Key(name).Value(id).Nx().PxMilliseconds(30_000).Build()).Error(); err != nil {
			return err
		}
		if n, err := del.Exec(ctx, c, []string{name}, []string{id}).AsInt64(); err != nil || n != 1 {
			return fmt.Errorf("deleted %d: %w", n, err)
		}
		return nil
	}
}

func storePair(ctx context.Context, s driver.Store) func(string) error {
	return func(name string) error {
		m := drivertest.Mutex(name, 30*time.Second)
		g, err := s.Acquire(ctx, m)
		if err != nil {
			return err
		}
		m.Token = g.Token
		return s.Release(ctx, m)
	}
}

func mutexPair(b *testing.B, ctx context.Context, s driver.Store) func(string) error {
	client, err := dibs.New(s, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close(context.Background()) })
	return func(name string) error {
		l, err := client.Mutex(name).Lock(ctx)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ratio is the median of a's elements, each by b's of the same turn.
func ratio(a, b []float64) float64 {
	rs := make([]float64, len(a))
	for i := range a {
		rs[i] = a[i] / b[i]
	}
	slices.Sort(rs)
	return rs[len(rs)/2]
}
