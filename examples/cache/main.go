// Command cache refreshes a cached value without a stampede: when it has run out,
// one of all callers on all instances computes it. Those that have an old value go
// on with that; those that have none wait for the new one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

var (
	file   = flag.String("file", "report.txt", "the cache that the instances share")
	source = flag.String("source", "queries.log", "`file` that counts how often the value was computed")
	fresh  = flag.Duration("fresh", time.Minute, "how long a value is fresh")
	calls  = flag.Int("calls", 10, "how many callers want it at once")
)

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	refresh := c.Mutex("cache/report")
	errs := make([]error, *calls)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { // ends with its call
			value, err := get(ctx, refresh)
			if err == nil {
				fmt.Println(value)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// get returns the value, fresh or not.
func get(ctx context.Context, refresh *dibs.Locker) (string, error) {
	value, age, err := cached()
	switch {
	case err == nil && age < *fresh:
		return value, nil
	case err == nil:
		// An old value is good enough while another computes the new one.
		if err := refresh.TryDo(ctx, compute); err != nil && !errors.Is(err, dibs.ErrHeld) {
			return "", err
		}
	case errors.Is(err, os.ErrNotExist):
		if err := refresh.Do(ctx, compute); err != nil {
			return "", err
		}
	default:
		return "", err
	}
	value, _, err = cached()
	return value, err
}

// compute makes the value anew, unless another did while we waited.
func compute(ctx context.Context) error {
	if _, age, err := cached(); err == nil && age < *fresh {
		return nil
	}
	value := "report of " + time.Now().Format(time.DateTime)
	if err := app.Append(*source, "computed"); err != nil { // the slow query
		return err
	}
	draft := *file + ".new" // ours alone, by the lock
	if err := os.WriteFile(draft, []byte(value), 0o644); err != nil {
		return err
	}
	return os.Rename(draft, *file)
}

// cached returns what is in the cache.
func cached() (value string, age time.Duration, err error) {
	info, err := os.Stat(*file)
	if err != nil {
		return "", 0, err
	}
	b, err := os.ReadFile(*file)
	return string(b), time.Since(info.ModTime()), err
}
