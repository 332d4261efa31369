package sqlitelock_test

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/sqlitelock"
	"modernc.org/sqlite"
)

// A floor is what a pair of statements costs through the same driver, with the
// same pragmas: a bare upsert and a delete, each its own transaction.
type floor struct {
	mu       sync.Mutex // guards the connection
	upsert   sqldriver.StmtExecContext
	deletion sqldriver.StmtExecContext
}

func newFloor(b *testing.B) *floor {
	b.Helper()
	raw, err := (&sqlite.Driver{}).Open(filepath.Join(b.TempDir(), "floor.db"))
	must(b, err)
	b.Cleanup(func() { _ = raw.Close() })
	for _, q := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
		"CREATE TABLE locks (name TEXT PRIMARY KEY, id TEXT, token INTEGER, until INTEGER) STRICT, WITHOUT ROWID",
	} {
		_, err := raw.(sqldriver.ExecerContext).ExecContext(context.Background(), q, nil)
		must(b, err)
	}
	prepare := func(q string) sqldriver.StmtExecContext {
		s, err := raw.Prepare(q)
		must(b, err)
		b.Cleanup(func() { _ = s.Close() })
		return s.(sqldriver.StmtExecContext)
	}
	return &floor{
		upsert: prepare(`INSERT INTO locks VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (name) DO UPDATE SET id = ?2, token = token + 1, until = ?4 WHERE until < ?4`),
		deletion: prepare("DELETE FROM locks WHERE name = ?1 AND id = ?2"),
	}
}

func (f *floor) pair(name, id string) error {
	args := []sqldriver.NamedValue{{Ordinal: 1, Value: name}, {Ordinal: 2, Value: id}, {Ordinal: 3, Value: int64(1)}, {Ordinal: 4, Value: int64(1 << 40)}}
	f.mu.Lock()
	_, err := f.upsert.ExecContext(context.Background(), args)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.deletion.ExecContext(context.Background(), args[:2])
	return err
}

func pair(s *sqlitelock.Store, name, id string) error {
	c := mutex(name, id)
	g, err := s.Acquire(context.Background(), c)
	if err != nil {
		return err
	}
	c.Token = g.Token
	return s.Release(context.Background(), c)
}

const benchID = "0123456789abcdef0123456789abcdef"

// BenchmarkUncontended takes turns between a pair of statements and an acquire
// with its release, so that both see the same disk.
func BenchmarkUncontended(b *testing.B) {
	f, s := newFloor(b), openStore(b, filepath.Join(b.TempDir(), "locks.db"), nil)
	var raw, ours time.Duration
	for b.Loop() {
		begin := time.Now()
		must(b, f.pair("orders/42", benchID))
		middle := time.Now()
		must(b, pair(s, "orders/42", benchID))
		raw, ours = raw+middle.Sub(begin), ours+time.Since(middle)
	}
	b.ReportMetric(float64(raw.Nanoseconds())/float64(b.N), "raw-ns/op")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "lock-ns/op")
	b.ReportMetric(float64(ours)/float64(raw), "x-raw")
}

// BenchmarkParallel is the same with 64 goroutines, each on its own name, in
// turns of 1,280 pairs.
func BenchmarkParallel(b *testing.B) {
	f, s := newFloor(b), openStore(b, filepath.Join(b.TempDir(), "locks.db"), nil)
	turn := func(pair func(name, id string) error) time.Duration {
		var wg sync.WaitGroup
		var failed atomic.Value
		begin := time.Now()
		for i := range 64 {
			wg.Go(func() {
				for range 20 {
					if err := pair(fmt.Sprintf("orders/%d", i), benchID); err != nil {
						failed.Store(err)
					}
				}
			})
		}
		wg.Wait()
		if err := failed.Load(); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
	var raw, ours time.Duration
	for b.Loop() {
		raw += turn(f.pair)
		ours += turn(func(name, id string) error { return pair(s, name, id) })
	}
	pairs := float64(b.N) * 64 * 20
	b.ReportMetric(pairs/raw.Seconds(), "raw-pairs/s")
	b.ReportMetric(pairs/ours.Seconds(), "lock-pairs/s")
	b.ReportMetric(float64(raw)/float64(ours), "x-raw")
}
