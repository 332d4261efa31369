package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dibslock/dibs/driver"
)

// never is the end of what is open-ended.
const never = time.Duration(math.MaxInt64)

// An attempt is what the events with one number tell.
type attempt struct {
	Event                  // the Called
	granted  bool          // and then Token and Fence are set
	refused  bool          // certainly not granted
	returned time.Duration // when the acquire returned; never: it did not
	trusted  time.Duration // the last moment at which its holder may act
	stopped  time.Duration // when its holder stopped by itself; never: it did not
	gone     time.Duration // when certainly nothing of it was left; never: open-ended
}

// claim is what the attempt asked for.
func (a *attempt) claim() driver.Claim {
	return driver.Claim{Units: a.Units, Capacity: a.Capacity}
}

// end is the end of the attempt's window, which begins at returned.
func (a *attempt) end() time.Duration { return min(a.trusted, a.stopped) }

// occupied is when its name can be free again: a holder may be seen to act for
// the last time long before it stops.
func (a *attempt) occupied() time.Duration {
	if a.stopped != never {
		return a.stopped
	}
	return a.trusted
}

// String names the attempt in a verdict.
func (a *attempt) String() string {
	s := fmt.Sprintf("attempt %d of proc %d (%d of %d)", a.Attempt, a.Proc, a.Units, a.Capacity)
	if a.granted {
		s += fmt.Sprintf(" held [%v, %v] with token %d, fence %d", a.returned, a.end(), a.Token, a.Fence)
	}
	return s
}

// attempts makes attempts of events, and tells what makes no sense.
func attempts(events []Event) ([]*attempt, []Violation) {
	var (
		all  []*attempt
		bad  []Violation
		byID = make(map[int]*attempt)
	)
	for _, e := range events {
		if e.Attempt == 0 {
			continue
		}
		a := byID[e.Attempt]
		wrong := func() {
			bad = append(bad, Violation{Malformed, e.Key, e.At, e.String()})
		}
		if e.Kind == Called {
			if a != nil {
				wrong()
				continue
			}
			a = &attempt{Event: e, returned: never, stopped: never, gone: never}
			byID[e.Attempt] = a
			all = append(all, a)
			continue
		}
		if a == nil || e.At < a.At {
			wrong()
			continue
		}
		open := a.returned == never
		switch {
		case e.Kind == Granted && open:
			a.granted, a.returned, a.trusted = true, e.At, e.Until
			a.Token, a.Fence = e.Token, e.Fence
		case e.Kind == Refused && open:
			a.refused, a.returned, a.gone = true, e.At, e.At
		case e.Kind == Failed && open:
			a.returned = e.At
		case e.Kind == Proved && a.granted:
			a.trusted = max(a.trusted, e.Until)
		case (e.Kind == Letting || e.Kind == Lost) && a.granted:
			a.stopped = min(a.stopped, e.At)
		case e.Kind == Released && a.stopped != never:
			a.gone = min(a.gone, e.At)
		default:
			wrong()
		}
	}
	return all, bad
}

// byKey groups attempts, each group ordered by less.
func byKey(all []*attempt, less func(a, b *attempt) int) map[string][]*attempt {
	groups := make(map[string][]*attempt)
	for _, a := range all {
		groups[a.Key] = append(groups[a.Key], a)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, less)
	}
	return groups
}

func byCall(a, b *attempt) int { return cmp.Compare(a.At, b.At) }

func byReturn(a, b *attempt) int { return cmp.Compare(a.returned, b.returned) }
