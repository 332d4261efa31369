package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A comparison measures one way of using dibs beside its floor.
type comparison struct {
	name    string
	workers int
	bar     string // what is asked of the ratio, for the report
	floor   op
	dibs    op
}

// An op does one operation as worker number w.
type op func(ctx context.Context, w int) error

// A result holds, for each round, operations per second of both sides.
type result struct {
	comparison
	floors, dibses []float64
}

// measure runs both sides turn by turn. Which one begins alternates too.
func (c comparison) measure(ctx context.Context, rounds int, each time.Duration) (result, error) {
	r := result{comparison: c}
	if err := errors.Join(c.warm(ctx, c.floor), c.warm(ctx, c.dibs)); err != nil {
		return r, err
	}
	for i := range rounds {
		sides := []struct {
			op  op
			out *[]float64
		}{{c.floor, &r.floors}, {c.dibs, &r.dibses}}
		if i%2 == 1 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			rate, err := c.rate(ctx, side.op, each)
			if err != nil {
				return r, err
			}
			*side.out = append(*side.out, rate)
		}
	}
	return r, nil
}

func (c comparison) warm(ctx context.Context, o op) error {
	_, err := c.rate(ctx, o, 50*time.Millisecond)
	return err
}

// rate is how many operations per second all workers do together.
func (c comparison) rate(ctx context.Context, o op, each time.Duration) (float64, error) {
	var ops atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, c.workers)
	began := time.Now()
	for w := range c.workers {
		wg.Go(func() {
			for time.Since(began) < each {
				if errs[w] = o(ctx, w); errs[w] != nil {
					return
				}
				ops.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(ops.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

// ratios are dibs' operations over the floor's, round by round.
func (r result) ratios() []float64 {
	out := make([]float64, len(r.floors))
	for i := range out {
		out[i] = r.dibses[i] / r.floors[i]
	}
	return out
}

// spread returns the median, and the quartiles around it.
func spread(xs []float64) (low, median, high float64) {
	xs = slices.Sorted(slices.Values(xs))
	at := func(q float64) float64 { return xs[int(q*float64(len(xs)-1)+0.5)] }
	return at(0.25), at(0.5), at(0.75)
}
