package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// refusals judges that whoever was refused without waiting was refused because
// of somebody: an attempt of another that had begun before the refusal returned
// and was not certainly gone when the refused one was called. What happened at
// one instant may have happened in any order.
func refusals(all []*attempt) []Violation {
	var bad []Violation
	for key, group := range byKey(all, byCall) {
		returns := slices.Clone(group)
		slices.SortStableFunc(returns, byReturn)
		var first, second *attempt // the two that are gone last
		next := 0
		for _, a := range returns {
			for ; next < len(group) && group[next].At <= a.returned; next++ {
				switch o := group[next]; {
				case first == nil || o.gone > first.gone:
					first, second = o, first
				case second == nil || o.gone > second.gone:
					second = o
				}
			}
			if !a.refused || a.Waits {
				continue
			}
			other := first
			if other == a {
				other = second
			}
			if other == nil || other.gone < a.At {
				bad = append(bad, Violation{Refusal, key, a.returned, fmt.Sprintf("%v was refused while nobody was there", a)})
			}
		}
	}
	return bad
}

// A span is a stretch of time.
type span struct{ from, to time.Duration }

// quiet lists the stretches without a fault, each without its first settle.
func quiet(events []Event, settle time.Duration) []span {
	marks := slices.Clone(events)
	slices.SortStableFunc(marks, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	var spans []span
	from, whole := settle, true // claims of an earlier history may be in the way too
	end := time.Duration(0)
	for _, e := range marks {
		end = max(end, e.At)
		switch {
		case e.Kind == Fault:
			if whole && from < e.At {
				spans = append(spans, span{from, e.At})
			}
			whole = false
		case e.Kind == Healed && !whole:
			from, whole = e.At+settle, true
		}
	}
	if whole && from < end {
		spans = append(spans, span{from, end})
	}
	return spans
}

// stalls judges that no waiter waits beside a free name for longer than bound
// in a quiet stretch. A name is free while nobody's window is open; a waiter
// that never returned waits until the end.
func stalls(all []*attempt, calm []span, bound time.Duration) []Violation {
	var bad []Violation
	for key, group := range byKey(all, byCall) {
		free := gaps(group)
		for _, a := range group {
			if !a.Waits {
				continue
			}
			for _, g := range overlapping(free, span{a.At, a.returned}) {
				for _, c := range overlapping(calm, g) {
					if c.to-c.from > bound {
						bad = append(bad, Violation{Stall, key, c.to, fmt.Sprintf("%v waited beside a free name from %v to %v", a, c.from, c.to)})
					}
				}
			}
		}
	}
	return bad
}

// gaps lists when none of the windows is open.
func gaps(group []*attempt) []span {
	var windows []span
	for _, a := range group {
		switch {
		case a.granted && a.Holds:
			windows = append(windows, span{a.At, a.occupied()})
		case a.granted:
			windows = append(windows, span{a.returned, a.occupied()})
		case a.Holds:
			windows = append(windows, span{a.At, a.returned})
		}
	}
	slices.SortFunc(windows, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var free []span
	var from time.Duration
	for _, w := range windows {
		if w.from > from {
			free = append(free, span{from, w.from})
		}
		from = max(from, w.to)
	}
	return append(free, span{from, never})
}

// overlapping cuts the spans, which are ordered and disjoint, to within.
func overlapping(spans []span, within span) []span {
	i, _ := slices.BinarySearchFunc(spans, within.from, func(s span, at time.Duration) int { return cmp.Compare(s.to, at) })
	var cut []span
	for _, s := range spans[i:] {
		if s.from >= within.to {
			break
		}
		if s := (span{max(s.from, within.from), min(s.to, within.to)}); s.from < s.to {
			cut = append(cut, s)
		}
	}
	return cut
}
