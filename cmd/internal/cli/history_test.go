//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// Nobody has to ask for the journal of the default store.
func TestDefaultStoreHasAHistory(t *testing.T) {
	t.Parallel()
	cmd := asUser(t, "run", "nightly", "--")
	cmd.Args = append(cmd.Args, cmd.Path, "history", "--json")
	out, err := cmd.Output()
	if code := exitCode(t, err); code != 0 || !strings.Contains(string(out), `"key":"nightly"`) {
		t.Errorf("exit code %d, history %q", code, out)
	}
}
