//go:build unix

package child_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/cmd/internal/child"
)

const patience = 30 * time.Second

// start runs a shell script, and ends its group with the test.
func start(t *testing.T, script string, env ...string) *child.Process {
	t.Helper()
	path, err := child.Look("sh")
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(path, []string{"sh", "-c", script}, append(os.Environ(), env...), [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		<-p.Gone()
	})
	return p
}

// closed waits for ch.
func closed(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("%s: not after %v", what, patience)
	}
}

// written waits until there is a line in the file.
func written(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if data, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(data), "\n") {
			return strings.TrimSpace(string(data))
		}
	}
	t.Fatalf("%s was not written", path)
	return ""
}

func TestCodeIsHowItEnded(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			p := start(t, script)
			closed(t, "the end", p.Gone())
			closed(t, "the exit", p.Exited())
			if code, err := p.Code(); code != want || err != nil {
				t.Fatalf("Code() = %d, %v; want %d", code, err, want)
			}
			if err := p.Kill(); err != nil {
				t.Fatalf("Kill after the end: %v", err)
			}
		})
	}
}

func TestGoneWaitsForTheWholeGroup(t *testing.T) {
	t.Parallel()
	p := start(t, "sleep 99 & exit 3")
	closed(t, "the exit", p.Exited())
	select {
	case <-p.Gone():
		t.Fatal("Gone while a member of the group runs")
	default:
	}
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	closed(t, "the end", p.Gone())
	if code, err := p.Code(); code != 3 || err != nil {
		t.Fatalf("Code() = %d, %v; want 3", code, err)
	}
}

func TestSignalReachesTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, `
		trap 'echo yes >$DIR/outer' USR1
		sh -c 'trap "echo yes >$DIR/inner; exit" USR1; echo ready >$DIR/ready; while :; do sleep 0.02; done' &
		until wait; do :; done
		while :; do sleep 0.02; done`, "DIR="+dir)
	written(t, dir+"/ready")
	if err := p.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	written(t, dir+"/inner")
	written(t, dir+"/outer")
}

func TestTerminateReachesWhatIsStopped(t *testing.T) {
	t.Parallel()
	p := start(t, "kill -STOP $$; exit 1")
	for !stopped(t, p.Pid()) {
		time.Sleep(2 * time.Millisecond)
	}
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	closed(t, "the end", p.Gone())
	if code, _ := p.Code(); code != 143 {
		t.Fatalf("code %d, want 143", code)
	}
}

func stopped(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no /proc here")
	}
	return strings.Contains(string(stat), ") T ")
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	plain := filepath.Join(dir, "plain-file-of-a-test")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"sh": nil, "/bin/sh": nil, "": child.ErrNotFound, "no-such-command": child.ErrNotFound,
		"/no/such": child.ErrNotFound, dir: child.ErrNotExecutable, plain: child.ErrNotExecutable,
		"plain-file-of-a-test": child.ErrNotExecutable,
	} {
		if _, err := child.Look(name); !errors.Is(err, want) {
			t.Errorf("Look(%q) = %v, want %v", name, err, want)
		}
	}
}
