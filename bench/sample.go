package main

import (
	"math"
	"slices"
)

// A sample is one turn's figures, by name. What was not measured is not in it.
type sample map[string]float64

// A figure is one column of a contest's report.
type figure struct {
	name   string
	over   bool // it is told as a multiple of the floor's of the same round
	digits int
}

// of is the figure in each round for player i; nil if it was not measured.
func (f figure) of(o outcome, i int) (xs []float64) {
	for round, s := range o.samples[i] {
		x, ok := s[f.name]
		if !ok {
			return nil
		}
		if f.over {
			x /= o.samples[0][round][f.name]
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		xs = append(xs, x)
	}
	return xs
}

// spread returns the median, and the quartiles around it.
func spread(xs []float64) (low, median, high float64) {
	xs = slices.Sorted(slices.Values(xs))
	at := func(q float64) float64 { return xs[int(q*float64(len(xs)-1)+0.5)] }
	return at(0.25), at(0.5), at(0.75)
}

// fairness is Jain's index of fairness: 1 if all have the same, 1/n if one has
// all (Jain, Chiu and Hawe 1984).
func fairness(shares []int) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
