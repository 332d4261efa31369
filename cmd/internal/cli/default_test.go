//go:build unix

package cli_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// asUser returns a run of dibs by a user who is not root, without a store of its
// choice, in a directory of that user.
func asUser(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(os.Environ(), "DIBS_STORE_URL=", "XDG_STATE_HOME="+cmd.Dir+"/state")
	if os.Geteuid() != 0 {
		return cmd
	}
	const nobody = 65534
	// The test binary is where only its owner may go.
	if err := os.Remove(cmd.Path); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err == nil {
		err = copyFile(cmd.Path, exe)
	}
	for dir := cmd.Dir; err == nil && dir != os.TempDir(); dir = dir[:strings.LastIndexByte(dir, '/')] {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = os.Chown(cmd.Dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

func TestTheDefaultStoreIsAFileOfTheUser(t *testing.T) {
	t.Parallel()
	cmd := asUser(t, "run", "-v", "k", "--", "true")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "/state/dibs/locks.db (the default)") {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(cmd.Dir + "/state/dibs")
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the directory: %v, %v", info, err)
	}
}

func TestADefaultStoreThatCannotBeMade(t *testing.T) {
	t.Parallel()
	cmd := asUser(t, "run", "k", "--", "touch", "ran")
	if err := os.WriteFile(cmd.Dir+"/state", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if got := exitCode(t, cmd.Run()); got != 73 {
		t.Fatalf("exit code %d, want 73\n%s", got, stderr.String())
	}
}

func TestAStoreThatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	cmd := asUser(t, "run", "k", "--", "touch", "ran")
	if err := os.MkdirAll(cmd.Dir+"/state/dibs", 0o555); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if got := exitCode(t, cmd.Run()); got != 77 {
		t.Fatalf("exit code %d, want 77\n%s", got, stderr.String())
	}
}
