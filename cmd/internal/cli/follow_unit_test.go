package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// keysOf makes a look at the keys: "a=held:1", "a=waiting:7".
func keysOf(t *testing.T, specs ...string) []keyStatus {
	t.Helper()
	var all []keyStatus
	for _, spec := range specs {
		key, claim, _ := strings.Cut(spec, "=")
		state, text, _ := strings.Cut(claim, ":")
		var n uint64
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		h := dibs.Holder{Name: key, Units: 1, Capacity: 1, Token: n}
		for s := driver.Held; s <= driver.Waiting; s++ {
			if s.String() == state {
				h.State = s
			}
		}
		if h.State == driver.Waiting {
			h.Token, h.Place = 0, n
		}
		if len(all) == 0 || all[len(all)-1].Key != key {
			all = append(all, freeKey(key))
		}
		all[len(all)-1].add(h)
	}
	return all
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		old, now []string
		want     string
	}{
		{"nothing", nil, nil, ""},
		{"no change", []string{"a=held:1", "a=waiting:2"}, []string{"a=held:1", "a=waiting:2"}, ""},
		{"new and gone", []string{"a=held:1", "c=held:2"}, []string{"b=held:3", "c=held:2", "d=held:4"}, "a freed 1, b held 3, d held 4"},
		{"another holder", []string{"a=held:1"}, []string{"a=held:2"}, "a freed 1, a held 2"},
		{"out of the line", []string{"a=held:1", "a=waiting:2", "a=waiting:3"}, []string{"a=handed:4", "a=waiting:3"}, "a freed 1, a left 2, a handed 4"},
		{"another state", []string{"a=handed:1"}, []string{"a=held:1"}, "a held 1"},
		{"revoked", []string{"a=held:1"}, []string{"a=revoked:1"}, "a revoked 1"},
		{"into the line", []string{"a=held:1"}, []string{"a=held:1", "a=waiting:2"}, "a waiting 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range differences(time.Now(), keysOf(t, test.old...), keysOf(t, test.now...)) {
				got = append(got, fmt.Sprintf("%s %s %s%s", c.Key, c.Change, c.Claim.Token, c.Claim.Place))
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A store that gives no answer is told of once, and so is its return; nothing is
// taken for freed meanwhile.
func TestWatchTellsOfAStoreThatIsDown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := &follower{listing: listing{json: true}, out: &out}
	held := keysOf(t, "a=held:1")
	for _, look := range []struct {
		all []keyStatus
		err error
	}{{held, nil}, {nil, errDoubt}, {nil, errDoubt}, {held, nil}, {nil, nil}} {
		if err := f.tell(time.Now(), look.all, look.err); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(line, `"change":"`)
		kind, _, _ := strings.Cut(rest, `"`)
		kinds = append(kinds, kind)
	}
	if want := []string{"held", "store_down", "store_up", "freed"}; !slices.Equal(kinds, want) {
		t.Errorf("got %q, want %q", kinds, want)
	}
}
