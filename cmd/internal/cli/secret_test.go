//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No command shows a part of the password in the URL of a store that it can't use.
// Each is a process: what runs a command reaps all children of its own.
func TestNoCommandShowsAPartOfAPassword(t *testing.T) {
	t.Parallel()
	const first, second = "4815162", "Tr0ub4dor" // the first of them could be a port
	report := filepath.Join(t.TempDir(), "report")
	commands := [][]string{
		{"run", "a", "-v", "--report", report, "-s", "URL", "--", "true"},
		{"ls", "-v", "-s", "URL"},
		{"show", "a", "-s", "URL", "--json"},
		{"run", "a", "--wait=1s", "-s", "URL", "--", "true"},
		{"history", "-s", "URL"},
		{"force-unlock", "a", "--token", "1", "--yes", "-s", "URL"},
		{"run", "a", "--dry-run", "-s", "URL", "--", "true"},
		{"watch", "-s", "URL", "--json"},
		{"doctor", "-s", "URL"},
		{"once", "a", "--report", report, "-s", "URL", "--", "true"},
		{"doctor", "-s", "URL", "--json"},
		{"store", "init", "--print", "-s", "URL"},
		{"limit", "a", "1/1s", "--if-store-down", "skip", "-s", "URL", "--", "true"},
	}
	urls := []string{
		"redis://app:" + second + "#3@127.0.0.1:1", "redis://app:" + first + "/67@127.0.0.1:1", "redis://app:" + first + "?67@127.0.0.1:1", "redis:app:" + second + "@h",
		"redis:/app:" + second + "@h", "app:" + second + "@h:6379", second + "@h", "redis://127.0.0.1:1?pass%20word=" + second + "%", "redis://127.0.0.1:1?password=x&" + second,
		"postgres://app:" + second + "#3@127.0.0.1:1/d", "postgres://app:" + first + "/67@127.0.0.1:1/d", "redlock://app:" + first + "/67@a,b,c", "sqlite://app:" + second + "#x@h/f",
	}
	for i, url := range urls {
		for j, args := range commands {
			if testing.Short() && (i+j)%3 != 0 {
				continue // each command has four URLs or five, and each URL as many commands
			}
			asked := strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "URL", url), "\n")
			cmd := command(t, asked...)
			out, err := cmd.CombinedOutput()
			written, _ := os.ReadFile(report)
			if code := exitCode(t, err); code == 0 || strings.Contains(string(out)+string(written), first) || strings.Contains(string(out)+string(written), second) {
				t.Errorf("dibs %q: exit %d\n%s%s", asked, code, out, written)
			}
		}
	}
}
