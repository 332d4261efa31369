package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A container is a PID namespace whose process 1 is dibs.
type container struct {
	t   *testing.T
	cmd *exec.Cmd
	out output
	pid int // of dibs, outside
}

// output is what a process has said so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// contain runs dibs as process 1. With own, /proc shows the namespace, as in a
// container.
func contain(t *testing.T, own bool, dir string, args ...string) *container {
	t.Helper()
	flags := []string{"--pid", "--fork", "--kill-child"}
	if own {
		flags = append(flags, "--mount-proc")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil || exec.Command(unshare, append(flags, "true")...).Run() != nil {
		flags = append([]string{"--user", "--map-root-user"}, flags...)
		if err != nil || exec.Command(unshare, append(flags, "true")...).Run() != nil {
			t.Skip("no PID namespace can be made here")
		}
	}
	cmd := command(t, args...)
	cmd.Args = append(append([]string{"unshare"}, flags...), append([]string{cmd.Path}, args...)...)
	cmd.Path = unshare
	if dir != "" {
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "DIBS_STORE_URL=sqlite://"+dir+"/locks.db")
	}
	c := &container{t: t, cmd: cmd}
	cmd.Stdout, cmd.Stderr = &c.out, &c.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c.await("dibs runs", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil {
			t.Skip(err)
		}
		c.pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.pid))
		return strings.Contains(string(line), "dibs\x00"+args[0]+"\x00")
	})
	return c
}

func (c *container) await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("still not after %v: %s", patience, what)
		}
	}
}

func (c *container) written(name string) {
	c.t.Helper()
	c.await(name+" is written", func() bool {
		_, err := os.Stat(c.cmd.Dir + "/" + name)
		return err == nil
	})
}

func (c *container) signal(sig unix.Signal) {
	c.t.Helper()
	if err := unix.Kill(c.pid, sig); err != nil {
		c.t.Fatal(err)
	}
}

// ends checks the exit code.
func (c *container) ends(want int) {
	c.t.Helper()
	if got := exitCode(c.t, c.cmd.Wait()); got != want {
		c.t.Errorf("exit code %d, want %d\n%s", got, want, c.out.String())
	}
}

// Orphans are collected, and the command's code is the container's.
func TestProcessOneCollectsOrphans(t *testing.T) {
	t.Parallel()
	c := contain(t, true, "", "run", "k", "--", "sh", "-c", `
		echo 1:$(cat /proc/1/cmdline | tr '\0' ' ')
		for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 &); setsid sh -c '(sleep 0.01 &)'; done
		n=0
		while [ $((n += 1)) -le 600 ]; do # one look is enough where they are collected at once
			sleep 0.1
			zombies=$(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null)
			[ -z "$zombies" ] && exit 7
		done
		echo $zombies; exit 1`)
	c.ends(7)
	if out := c.out.String(); !strings.Contains(out, "dibs run k") {
		t.Errorf("dibs isn't process 1: %s", out)
	}
}

// A runner collects what its jobs leave behind, and what stops a container drains
// it: the job that runs ends by itself, and none begins.
func TestProcessOneServes(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own proc %v", own), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := `
				for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 &); setsid sh -c '(sleep 0.01 &)'; done
				while ps -A -o stat= -o ppid= | grep '^Z.* 1$'; do sleep 0.1; done
				: >>up
				until [ -e go ]; do sleep 0.05; done
				echo ended >>ends`
			file := fmt.Sprintf("version: 1\nserver: { listen: '127.0.0.1:0', drain: 5m }\njobs: { a: { schedule: '@every 1s', command: [sh, -c, %q] } }\n", script)
			if err := os.WriteFile(dir+"/dibs.yaml", []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			c := contain(t, own, dir, "serve", "-c", "dibs.yaml")
			c.written("up")
			c.signal(unix.SIGTERM)
			c.await("it drains", func() bool { return strings.Contains(c.out.String(), "msg=draining") })
			if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c.ends(0)
			if ends, err := os.ReadFile(dir + "/ends"); err != nil || string(ends) != "ended\n" {
				t.Errorf("the job said %q: %v\n%s", ends, err, c.out.String())
			}
			if out := c.out.String(); strings.Count(out, "state=succeeded") != 1 || !strings.Contains(out, "msg=ended") {
				t.Error(out)
			}
		})
	}
}

// What stops a container reaches the command, and ends a wait.
func TestProcessOnePassesSignalsOn(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own proc %v", own), func(t *testing.T) {
			t.Parallel()
			c := contain(t, own, "", "run", "k", "--", "sh", "-c", `trap 'exit 5' TERM; : >up; while :; do sleep 0.05; done`)
			c.written("up")
			w := contain(t, own, c.cmd.Dir, "run", "--wait", "k", "--", "touch", "ran")
			c.await("somebody waits", func() bool { return strings.Contains(status(t, c.cmd.Dir), "waiting, 1 in line") })
			w.signal(unix.SIGTERM)
			w.ends(143)
			c.signal(unix.SIGTERM)
			c.ends(5)
		})
	}
}

// status is what dibs show says of the key k in the store of dir.
func status(t *testing.T, dir string) string {
	t.Helper()
	cmd := command(t, "show", "k")
	cmd.Env = append(cmd.Env, "DIBS_STORE_URL=sqlite://"+dir+"/locks.db")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A lost lock ends what left the group too; where /proc shows another namespace,
// the group.
func TestProcessOneStopsTheCommand(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own proc %v", own), func(t *testing.T) {
			t.Parallel()
			c := contain(t, own, "", "run", "-v", "--timeout", "300ms", "--kill-after", "100ms", "k", "--", "sh", "-c", `trap : TERM; sleep 999 & while :; do sleep 0.05; done`)
			c.ends(124)
			if strings.Contains(c.out.String(), "/proc doesn't show this PID namespace") == own {
				t.Error(c.out.String())
			}
		})
	}
}
