package fence_test

import (
	"net/http"
	"testing"

	"github.com/dibslock/dibs/fence"
)

// FuzzFromHeader: what is let in can be compared, and goes out as it came in.
func FuzzFromHeader(f *testing.F) {
	for _, seed := range [][2]string{{"orders%2F42", "1"}, {"a", "9223372036854775807"}, {"%", "1"}, {"a", "0"}, {"a", "01"}, {"", ""}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, token string) {
		lease, err := fence.FromHeader(http.Header{fence.HeaderName: {name}, fence.HeaderFence: {token}})
		if err != nil {
			return
		}
		if lease.Fence() == 0 || lease.Fence() > fence.MaxToken || lease.Name() == "" {
			t.Fatalf("%q %q: let in as %q %d", name, token, lease.Name(), lease.Fence())
		}
		h := http.Header{}
		must(t, fence.SetHeader(h, lease))
		if again, err := fence.FromHeader(h); err != nil || again != lease {
			t.Fatalf("%v came back as %v, %v", lease, again, err)
		}
	})
}
