package judge

import (
	"fmt"

	"github.com/dibslock/dibs/driver"
)

// overlaps sweeps over the windows of each name by their begin and keeps those
// that are open: as many as there are holders at once.
func overlaps(all []*attempt) []Violation {
	var bad []Violation
	for key, group := range byKey(all, byReturn) {
		var open []*attempt
		for _, a := range group {
			if !a.granted || a.end() <= a.returned {
				continue
			}
			still := open[:0]
			for _, o := range open {
				if o.end() > a.returned {
					still = append(still, o)
				}
			}
			open = still
			if !fits(a, open) {
				bad = append(bad, Violation{Overlap, key, a.returned, fmt.Sprintf("%v, beside %v", a, open)})
			}
			open = append(open, a)
		}
	}
	return bad
}

// fits is law 2 among claims that are all live.
func fits(a *attempt, open []*attempt) bool {
	var units int64
	smallest, exclusive := 0, false
	for _, o := range open {
		units += int64(o.Units)
		if smallest == 0 || o.Capacity < smallest {
			smallest = o.Capacity
		}
		exclusive = exclusive || o.claim().Mode() == driver.Exclusive
	}
	return a.claim().Fits(units, smallest, exclusive)
}
