package model

import "math/rand/v2"

// everything is all that can happen, at once.
var everything = rules{
	clients: 3, ceiling: 20, doubled: true, forgets: true, amnesia: true, marker: true, renews: true, releases: true, revokes: true,
}

// steps is how long a schedule is: enough for three attempts, with their renewals
// and releases, and for much to go wrong between.
const steps = 150

// tally is what happened in many schedules.
type tally struct{ schedules, grants, proofs, settled, passed, revoked int }

// walk makes what can happen happen in a random order. A client is more likely
// to get on than the clock is to end its claim.
func (r *rules) walk(rnd *rand.Rand, as []action, sum *tally) (wrong string, path []action) {
	var w world
	path = as[len(as):]
	for range steps {
		as = r.enabled(&w, as[:0])
		if len(as) == 0 {
			break
		}
		a := as[rnd.IntN(len(as))]
		if (a.what == drops || a.what == gives || a.what == losesMemory) && rnd.IntN(4) > 0 {
			continue
		}
		path = append(path, a)
		if wrong := r.do(&w, a); wrong != "" {
			return wrong, path
		}
		if r.over(&w) {
			break
		}
	}
	sum.schedules++
	for i := range r.clients {
		c := &w.clients[i]
		if c.fence == 0 {
			continue
		}
		sum.grants++
		if c.fences[0] != 0 {
			sum.settled++
		}
		if c.fences[1] != 0 {
			sum.passed++
		}
		if c.proved {
			sum.proofs++
		}
		if r.taken(c) {
			sum.revoked++
		}
	}
	return "", nil
}

// over tells whether a counter is larger than the model looks at.
func (r *rules) over(w *world) bool {
	for n := range r.nodes {
		if w.nodes[n].counter > r.ceiling {
			return true
		}
	}
	return false
}

// Schedule goes through one random schedule of three attempts on some nodes, with
// everything that can happen, and tells each what happens to the nodes, in order.
func Schedule(nodes int, seed uint64, each func(Call)) {
	r := everything
	r.nodes, r.each = nodes, each
	_, _ = r.walk(rand.New(rand.NewPCG(seed, uint64(nodes))), nil, new(tally))
}
