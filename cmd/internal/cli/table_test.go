//go:build unix

package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// command returns a run of this binary as the command, on a store of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link := dir + "/dibs"
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), link, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DIBS_STORE_URL=sqlite://"+dir+"/locks.db")
	return cmd
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var ee *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ee):
		return ee.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func TestTheCommandsExitCodeIsDibssOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	step := 1
	if testing.Short() {
		step = 15 // 0 and 255, 75 and 120 are among them; make more has them all
	}
	for code := 0; code < 256; code += step {
		cmd := command(t, "run", "k", "--", "sh", "-c", "exit "+strconv.Itoa(code))
		cmd.Env = append(cmd.Env, "DIBS_STORE_URL=sqlite://"+dir+"/locks.db")
		if got := exitCode(t, cmd.Run()); got != code {
			t.Errorf("exit code %d of a command that exits %d", got, code)
		}
	}
	for _, sig := range []int{1, 2, 3, 6, 9, 11, 13, 14, 15} {
		cmd := command(t, "run", "k", "--", "sh", "-c", "kill -"+strconv.Itoa(sig)+" $$")
		cmd.Env = append(cmd.Env, "DIBS_STORE_URL=sqlite://"+dir+"/locks.db")
		if got := exitCode(t, cmd.Run()); got != 128+sig {
			t.Errorf("exit code %d of a command that ends by signal %d", got, sig)
		}
	}
}

func TestKeysOfAllKinds(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"braces": "{a}{b", "slashes": "/a//b/", "spaces": " a  b ", "quotes": `"it's" \`, "unicode": "Schlüssel 🔑 鍵",
		"longest": strings.Repeat("k", 512), "glob": "a*[b?", "dash": "a--b", "equals": "a=b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, "run", key, "--", "sh", "-c", `printf %s "$DIBS_KEY"; env -u DIBS_KEYS dibs run -q "$DIBS_KEY" -- true; echo " $?"`)
			cmd.Env = append(cmd.Env, "PATH="+cmd.Dir+":"+os.Getenv("PATH"))
			out, err := cmd.Output()
			if err != nil || string(out) != key+" 75\n" {
				t.Fatalf("%q, %v; want the key and 75", out, err)
			}
		})
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"empty": "", "513 bytes": strings.Repeat("k", 513), "not UTF-8": "a\xffb", "a tab": "a\tb", "a newline": "a\nb", "an escape": "\x1b[31m", "DEL": "a\x7f",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"run", key, "--", "touch", "ran"}, {"show", key}} {
				cmd := command(t, args...)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				if got := exitCode(t, cmd.Run()); got != 64 {
					t.Errorf("%q: exit code %d, want 64", args, got)
				}
				if s := stderr.String(); !strings.Contains(s, "can't be locked") || !utf8.ValidString(s) || strings.ContainsAny(s, "\x1b\x7f") {
					t.Errorf("%q: message %q", args, s)
				}
				if _, err := os.Stat(cmd.Dir + "/ran"); err == nil {
					t.Errorf("%q ran", args)
				}
			}
		})
	}
}
