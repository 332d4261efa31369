package drivertest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Laws is how many laws docs/laws.md has.
const Laws = 54

// A law is one row of the suite. A law may have several rows, with different
// names.
type law struct {
	number int
	name   string // UpperCamel; the test is laws/L<number>_<name>
	test   func(t *testing.T, s *Stage)
	// waived, if it is set, is run instead of test on a store that waives the
	// law: it checks that what is waived is refused.
	waived func(t *testing.T, s *Stage)
	// bubble: the test plays with time in a way that only a bubble allows. It
	// is skipped on other stores.
	bubble bool
	// alone: the test changes something that others would see, or keeps the store
	// so busy that they would time out. It does not run beside any.
	alone bool
}

// laws is every row, in order. Each file law_*.go has a list of its own.
var laws = sorted(storeLaws, coreLaws, primLaws)

func sorted(lists ...[]law) []law {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b law) int { return cmp.Compare(a.number, b.number) })
	return all
}

// String is the name of the law's test.
func (l law) String() string { return fmt.Sprintf("L%d_%s", l.number, l.name) }

// Run tests every law on the harness's store, each on a fresh storage, and then
// a short torture and one without faults; with -short and in a bubble, shorter
// ones. Call it from a test named TestConformance.
func Run(t *testing.T, h Harness) {
	t.Run("complete", func(t *testing.T) { complete(t, h) })
	t.Run("laws", func(t *testing.T) { runLaws(t, h) })
	runs, long := uint64(1), time.Duration(0)
	switch {
	case h.Bubble && testing.Short():
		long = time.Minute // what takes no time still takes the processor's
	case h.Bubble:
		runs = 4
	}
	var wg sync.WaitGroup
	for name, o := range map[string]TortureOptions{"torture": {For: long}, "calm": {For: long, Calm: true}} {
		most := runs
		if !o.Calm && runs > 1 {
			most = 2 * runs // a fault and its victim must meet
		}
		wg.Go(func() { // ends with the test
			t.Run(name, func(t *testing.T) {
				company.RLock()
				defer company.RUnlock()
				torture(t, h, o.defaults(h.Bubble), func(done uint64) bool { return done < most })
			})
		})
	}
	wg.Wait()
}

// atOnce is how many laws run side by side in real time, where they mostly wait:
// many more than there are processors, if the harness does not say otherwise.
const atOnce = 8

// company is held for reading by what may run beside others, and for writing by
// what must not: a binary may have several harnesses at work.
var company sync.RWMutex

// runLaws runs the laws that must be alone, and then all the others.
func runLaws(t *testing.T, h Harness) {
	run := func(l law) {
		t.Run(l.String(), func(t *testing.T) {
			if why := h.Unfit[l.String()]; why != "" {
				t.Skip("the store can't play it: " + why)
			}
			if l.bubble && !h.Bubble {
				t.Skip("needs a bubble")
			}
			inside(t, h, l.check)
		})
	}
	var (
		others sync.WaitGroup
		slots  = make(chan struct{}, cmp.Or(h.AtOnce, atOnce))
	)
	for _, l := range laws {
		if l.alone {
			company.Lock()
			run(l)
			company.Unlock()
		}
	}
	for _, l := range laws {
		if l.alone {
			continue
		}
		others.Go(func() { // ends with the test
			slots <- struct{}{}
			defer func() { <-slots }()
			company.RLock()
			defer company.RUnlock()
			run(l)
		})
	}
	others.Wait()
}

// inside runs test on a fresh storage, in a bubble if the store can.
func inside(t *testing.T, h Harness, test func(t *testing.T, s *Stage)) {
	t.Helper()
	if !h.Bubble {
		test(t, newStage(t, h))
		return
	}
	synctest.Test(t, func(t *testing.T) { test(t, newStage(t, h)) })
}

// check tests the law, or that its waiver is honest.
func (l law) check(t *testing.T, s *Stage) {
	why := s.Facts.Waived(l.number)
	if why == "" {
		if waives(s.Facts, l.number) {
			t.Fatal("the store waives the law and does not say why")
		}
		l.test(t, s)
		return
	}
	t.Logf("waived: %s", why)
	if l.waived != nil {
		l.waived(t, s)
	}
}

func waives(f driver.Facts, number int) bool {
	return slices.ContainsFunc(f.Waives, func(w driver.Waiver) bool { return w.Law == number })
}

var lawName = regexp.MustCompile(`^L[1-9][0-9]*_[A-Z][A-Za-z0-9]+$`)

// complete fails if a law has no test, if a name is wrong or taken, or if what is
// unfit is no test.
func complete(t *testing.T, h Harness) {
	seen := make(map[string]bool)
	tested := make(map[int]bool)
	for _, l := range laws {
		switch name := l.String(); {
		case l.number < 1 || l.number > Laws:
			t.Errorf("%s: there is no such law", name)
		case !lawName.MatchString(name):
			t.Errorf("%s: not a law's test name", name)
		case seen[name]:
			t.Errorf("%s: two tests have this name", name)
		default:
			seen[name] = true
			tested[l.number] = true
		}
	}
	for n := 1; n <= Laws; n++ {
		if !tested[n] {
			t.Errorf("law %d has no test", n)
		}
	}
	for name, why := range h.Unfit {
		row, _, _ := strings.Cut(name, "/")
		if !seen[row] || why == "" {
			t.Errorf("%s is said to be unfit (%q): want the name of a law's test, and why", name, why)
		}
	}
}
