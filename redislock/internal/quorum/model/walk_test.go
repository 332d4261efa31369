package model

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// schedules walks n times, or until a time is over.
func schedules(t *testing.T, r rules, seed uint64, more func(n int) bool) {
	t.Helper()
	var sum tally
	as, rnd := make([]action, 0, 256), rand.New(rand.NewPCG(seed, uint64(r.nodes)))
	path := make([]action, 0, steps)
	for more(sum.schedules) {
		wrong, way := r.walk(rnd, as[:0:cap(as)], &sum)
		if wrong != "" {
			path = append(path[:0], way...)
			t.Fatalf("seed %d, schedule %d: %s%s", seed, sum.schedules, wrong, story(path))
		}
	}
	t.Logf("seed %d: %+v", seed, sum)
	if sum.grants < sum.schedules/4 || sum.settled == 0 || sum.passed == 0 || r.renews && sum.proofs == 0 || r.revokes && sum.revoked == 0 {
		t.Error("so little happened that it proves little")
	}
}

// TestManySchedules goes through random schedules, of three attempts on three
// nodes and on five, with everything that can happen.
func TestManySchedules(t *testing.T) {
	count := 100_000
	if testing.Short() {
		count = 5_000 // under the race detector
	}
	for _, nodes := range []int{3, 5} {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			t.Parallel()
			r := everything
			r.nodes = nodes
			schedules(t, r, 1, func(n int) bool { return n < count/2 })
		})
	}
}

// TestTortureOfTheModel is the long run: ten million schedules at least, and
// every state of larger models. See scripts/torture.sh.
func TestTortureOfTheModel(t *testing.T) {
	text := os.Getenv("DIBS_TORTURE_FOR")
	if text == "" {
		t.Skip("DIBS_TORTURE_FOR is not set")
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("DIBS_TORTURE_FOR: %v", err)
	}
	seed, _ := strconv.ParseUint(os.Getenv("DIBS_TORTURE_SEED"), 10, 64)
	for _, nodes := range []int{3, 5} {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			t.Parallel()
			r, start := everything, time.Now()
			r.nodes = nodes
			schedules(t, r, seed, func(n int) bool { return n < 5_000_000 || time.Since(start) < long })
		})
	}
	for what, r := range map[string]rules{
		"it releases": {nodes: 3, clients: 2, ceiling: 3, releases: true},
		"it renews":   {nodes: 3, clients: 2, ceiling: 3, renews: true},
		"it revokes":  {nodes: 3, clients: 2, ceiling: 2, renews: true, revokes: true},
		"it forgets":  {nodes: 3, clients: 2, ceiling: 3, forgets: true},
		"higher":      {nodes: 3, clients: 2, ceiling: 6},
		"amnesia":     {nodes: 3, clients: 2, ceiling: 3, amnesia: true, marker: true},
		"three":       {nodes: 3, clients: 3, ceiling: 3},
	} {
		t.Run(what, func(t *testing.T) {
			const limit = 12_000_000
			states, wrong, _ := r.search(limit, false)
			t.Logf("%d states, all of them: %v", states, states < limit)
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
}
