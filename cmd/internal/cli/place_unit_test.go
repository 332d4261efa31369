package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every other user's default store is found, the one in use is not, and a home
// without one is no matter.
func TestDefaultStores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home := func(name string, has bool) string {
		state := filepath.Join(dir, name, ".local/state/dibs")
		if err := os.MkdirAll(state, 0o700); err != nil {
			t.Fatal(err)
		}
		if has {
			if err := os.WriteFile(filepath.Join(state, "locks.db"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(dir, name)
	}
	passwd := strings.Join([]string{
		"ann:x:1000:1000::" + home("ann", true) + ":/bin/sh",
		"bob:x:1001:1001:Bob:" + home("bob", true) + ":/bin/sh",
		"bobs-job:x:1002:1002::" + home("bob", true) + ":/bin/sh",
		"eve:x:1003:1003::" + home("eve", false) + ":/bin/sh",
		"daemon:x:2:2::/nonexistent:/bin/false",
		"odd", "odd:x:7:7::relative:",
	}, "\n")
	mine := filepath.Join(dir, "ann/.local/state/dibs/locks.db")
	found, hidden := defaultStores(passwd, mine)
	want := []string{filepath.Join(dir, "bob/.local/state/dibs/locks.db") + " (bob)"}
	if !slices.Equal(found, want) || hidden != 0 {
		t.Errorf("got %q and %d hidden, want %q", found, hidden, want)
	}
}

func TestPlaceFile(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("x y.db")
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"sqlite:///var/lib/dibs/locks.db?journal=on": "/var/lib/dibs/locks.db",
		"sqlite:x%20y.db": here,
		"sqlite://":       "",
		"mem://x":         "",
		"%":               "",
	} {
		if got := (place{url: url}).file(); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
