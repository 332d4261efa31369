package judge

import (
	"fmt"
	"time"
)

// repeats judges that nothing runs under a name, by an attempt that began after
// what runs under it once was known to be done.
func repeats(all []*attempt, events []Event) []Violation {
	first := make(map[string]time.Duration)
	for _, e := range events {
		if at, known := first[e.Key]; e.Kind == Done && (!known || e.At < at) {
			first[e.Key] = e.At
		}
	}
	var bad []Violation
	for _, a := range all {
		if at, done := first[a.Key]; done && a.granted && a.At > at {
			bad = append(bad, Violation{Twice, a.Key, a.returned, fmt.Sprintf("%v ran, and it was known to be done at %v", a, at)})
		}
	}
	return bad
}
