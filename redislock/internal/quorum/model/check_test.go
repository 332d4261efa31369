package model

import (
	"fmt"
	"strings"
	"testing"
)

// search visits every state that can be reached, nearest first, until one breaks
// a promise or there are limit of them. States are known by a hash of 64 bits: one
// in a billion runs may take two for the same and miss one.
func (r rules) search(limit int, trace bool) (states int, wrong string, path []action) {
	type visit struct {
		w    world
		from int32
		by   action
	}
	if r.ceiling == 0 {
		r.ceiling = 6
	}
	var (
		start world
		seen  = map[uint64]struct{}{start.hash(): {}}
		log   = []visit{{w: start, from: -1}}
		as    []action
	)
	next := log[:1:1] // the states of the next step, if there is no trace to tell
	explore := func(at int, w *world) string {
		as = r.enabled(w, as[:0])
		for _, a := range as {
			then := *w
			wrong := r.do(&then, a)
			if wrong == "" && r.over(&then) {
				continue
			}
			h := then.hash()
			if _, known := seen[h]; known && wrong == "" {
				continue
			}
			seen[h] = struct{}{}
			v := visit{then, int32(at), a}
			if trace {
				log = append(log, v)
			} else {
				next = append(next, v)
			}
			if wrong != "" {
				if trace {
					for i := len(log) - 1; i > 0; i = int(log[i].from) {
						path = append([]action{log[i].by}, path...)
					}
				}
				return wrong
			}
		}
		return ""
	}
	if trace {
		for i := 0; i < len(log) && len(seen) < limit; i++ {
			w := log[i].w
			if wrong := explore(i, &w); wrong != "" {
				return len(seen), wrong, path
			}
		}
		return len(seen), "", nil
	}
	for len(next) > 0 && len(seen) < limit {
		now := next
		next = nil
		for i := range now {
			if wrong := explore(i, &now[i].w); wrong != "" {
				return len(seen), wrong, nil
			}
		}
	}
	return len(seen), "", nil
}

func story(path []action) string {
	var b strings.Builder
	for i, a := range path {
		fmt.Fprintf(&b, "\n%2d  %v", i+1, a)
	}
	return b.String()
}

// ours are settings in which the protocol keeps its promises.
var ours = map[string]rules{
	"as it is":               {nodes: 3, clients: 2, ceiling: 3},
	"a node without memory":  {nodes: 3, clients: 2, ceiling: 2, amnesia: true, marker: true},
	"names are forgotten":    {nodes: 3, clients: 2, ceiling: 2, forgets: true},
	"requests arrive double": {nodes: 3, clients: 2, ceiling: 2, doubled: true},
	"a name is taken away":   {nodes: 3, clients: 2, ceiling: 1, renews: true, revokes: true},
}

// theirs are wrong, each in one way, and how many states it takes at most to show.
var theirs = map[string]rules{
	"one round":                       {nodes: 3, clients: 2, noSettle: true},
	"the maximum instead of refusing": {nodes: 3, clients: 2, takesMax: true},
	"a free name is joined always":    {nodes: 3, clients: 2, joinsAlways: true},
	"renewal by token only":           {nodes: 3, clients: 2, renewsByID: true, renews: true},
	"a node votes without memory":     {nodes: 3, clients: 2, amnesia: true},
	"readmitted without the others":   {nodes: 3, clients: 2, amnesia: true, marker: true, hasty: true},
	"taken away at one node":          {nodes: 3, clients: 1, renews: true, revokes: true, oneRevokes: true},
	"a repeat takes it back":          {nodes: 3, clients: 1, doubled: true, renews: true, revokes: true, reclaims: true},
}

// TestManyStates looks at all that can happen to two clients and three nodes.
func TestManyStates(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the race detector's time")
	}
	for what, r := range ours {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const limit = 3_000_000
			states, wrong, _ := r.search(limit, false)
			t.Logf("%d states", states)
			if states >= limit {
				t.Errorf("there are more than %d states", limit)
			}
			if wrong != "" {
				_, wrong, path := r.search(limit, true)
				t.Errorf("%s%s", wrong, story(path))
			}
		})
	}
}

// TestManyWrongProtocols checks that the checker finds what is wrong with others.
func TestManyWrongProtocols(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the race detector's time")
	}
	for what, r := range theirs {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			states, wrong, path := r.search(3_000_000, true)
			if wrong == "" {
				t.Fatalf("nothing wrong found in %d states", states)
			}
			t.Logf("after %d states: %s%s", states, wrong, story(path))
		})
	}
}
