package judge

import (
	"fmt"

	"github.com/dibslock/dibs/driver"
)

// earlier sweeps over the grants of one name, by call and by return at once, and
// calls f with each and with those that returned before it was called, which it
// gets through seen, one by one.
func earlier(group []*attempt, seen, f func(a *attempt)) {
	byEnd := byKey(group, byReturn)
	for _, returned := range byEnd {
		next := 0
		for _, a := range group {
			for ; next < len(returned) && returned[next].returned < a.At; next++ {
				seen(returned[next])
			}
			f(a)
		}
	}
}

// tokens judges law 11. A token that is not known judges and is judged by none.
func tokens(all []*attempt) []Violation {
	var bad []Violation
	for key, group := range byKey(granted(all), byCall) {
		owner := make(map[uint64]*attempt)
		var newest *attempt
		earlier(group, func(a *attempt) {
			if a.Token != 0 && (newest == nil || a.Token > newest.Token) {
				newest = a
			}
		}, func(a *attempt) {
			if a.Token == 0 {
				return
			}
			if o := owner[a.Token]; o != nil {
				bad = append(bad, Violation{Token, key, a.returned, fmt.Sprintf("%v has the token of %v", a, o)})
			}
			owner[a.Token] = a
			if newest != nil && a.Token < newest.Token {
				bad = append(bad, Violation{Token, key, a.returned, fmt.Sprintf("%v began after %v", a, newest)})
			}
		})
	}
	return bad
}

// fences judges law 12.
func fences(all []*attempt) []Violation {
	var bad []Violation
	for key, group := range byKey(granted(all), byCall) {
		convict := func(a *attempt, why string, other *attempt) {
			s := fmt.Sprintf("%v: %s", a, why)
			if other != nil {
				s += " " + other.String()
			}
			bad = append(bad, Violation{Fence, key, a.returned, s})
		}
		owner := make(map[uint64]*attempt) // of exclusive fences
		var newest, writer *attempt        // the largest fence of all, and of the exclusive ones
		larger := func(a, b *attempt) bool { return b == nil || a.Fence > b.Fence }
		earlier(group, func(a *attempt) {
			if larger(a, newest) {
				newest = a
			}
			if a.claim().Mode() == driver.Exclusive && larger(a, writer) {
				writer = a
			}
		}, func(a *attempt) {
			switch a.claim().Mode() {
			case driver.Counted:
				if a.Fence != 0 {
					convict(a, "a counted claim has a fence", nil)
				}
			case driver.Exclusive:
				switch o := owner[a.Fence]; {
				case a.Fence == 0 || a.Token != 0 && a.Token != a.Fence:
					convict(a, "its fence is not its token", nil)
				case o != nil:
					convict(a, "it has the fence of", o)
				case newest != nil && a.Fence <= newest.Fence:
					convict(a, "it began after, and its fence is not larger than that of", newest)
				}
				owner[a.Fence] = a
			case driver.Shared:
				switch {
				case a.Fence == 0:
					convict(a, "it has no fence", nil)
				case writer != nil && a.Fence <= writer.Fence:
					convict(a, "it began after, and its fence is not larger than that of", writer)
				case newest != nil && a.Fence < newest.Fence:
					convict(a, "it began after, and its fence is smaller than that of", newest)
				}
			}
		})
		bad = append(bad, generations(key, group)...)
	}
	return bad
}

// generations judges that readers that hold at the same time have one fence.
func generations(key string, group []*attempt) []Violation {
	var bad []Violation
	var last *attempt // of the open readers the one whose window ends last
	for _, windows := range byKey(group, byReturn) {
		for _, a := range windows {
			if a.claim().Mode() != driver.Shared || a.end() <= a.returned {
				continue
			}
			if last != nil && last.end() > a.returned && last.Fence != a.Fence {
				bad = append(bad, Violation{Fence, key, a.returned, fmt.Sprintf("%v reads beside %v", a, last)})
			}
			if last == nil || a.end() > last.end() {
				last = a
			}
		}
	}
	return bad
}

func granted(all []*attempt) []*attempt {
	var some []*attempt
	for _, a := range all {
		if a.granted {
			some = append(some, a)
		}
	}
	return some
}
