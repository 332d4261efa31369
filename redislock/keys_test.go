package redislock_test

import (
	"fmt"
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// All keys of a name lie in one slot, as the server sees it, and lead back to it.
func FuzzKeys(f *testing.F) {
	for _, name := range []string{"a", "{}", "{", "}", "a{b", "a}b", "a{b}c", "{}x", "}{", "%7D", "%", "%25", "{{a}}", "a:b", "é", "{a}{b}"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if driver.CheckName(name) != nil {
			t.Skip()
		}
		for _, plain := range []bool{false, true} {
			ks := redislock.Keys(name, plain)
			if got, ok := redislock.NameOf(ks[0], plain); !ok || got != name {
				t.Errorf("plain %v: %q is at %q, which is the key of %q", plain, name, ks[0], got)
			}
			for _, k := range append(ks, ks[0]+":l", ks[0]+":p")[:3] {
				if !plain && redislock.Slot(k) != redislock.Slot(ks[0]) || plain && redislock.Slot(ks[0]) != redislock.Slot(name) {
					t.Errorf("plain %v: the keys of %q lie in several slots: %q", plain, name, ks)
				}
			}
		}
	})
}

func TestSlotsAreTheServers(t *testing.T) {
	r := servers.Redis(t, servers.RedisArgs("--cluster-enabled", "yes"))
	for i, key := range []string{"a", "{a}b", "{}x", "a{b", "", "{}", "foo{bar}{zap}", "foo{{bar}}zap", "dibs:{x}:l"} {
		if got := do(t, r, "CLUSTER", "KEYSLOT", key); got != int64(redislock.Slot(key)) {
			t.Errorf("%d: %q is in slot %v, we say %d", i, key, got, redislock.Slot(key))
		}
	}
	for i := range 1000 {
		name := fmt.Sprint("job ", i)
		ks := redislock.Keys(name, true)
		if a, b := do(t, r, "CLUSTER", "KEYSLOT", ks[0]), do(t, r, "CLUSTER", "KEYSLOT", name); a != b {
			t.Fatalf("%q is in slot %v and %q in %v", name, b, ks[0], a)
		}
	}
}
