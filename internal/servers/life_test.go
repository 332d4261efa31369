package servers_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/internal/servers"
)

// long is how long a test waits for what must happen; nothing is measured by it.
const long = time.Minute

func proc(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

// field returns a field of /proc/PID/stat, counted from the state.
func field(stat []byte, n int) string {
	text := string(stat)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])[n]
}

// until waits for something that gives no signal.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for this: %s", long, what)
		}
	}
}

// self is this test binary, to be run as a role.
func self(t *testing.T, as, pattern string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=^" + pattern + "$", "-test.v"}, args...)...)
	cmd.Env = append(os.Environ(), role+"="+as,
		"TMPDIR="+t.TempDir(), // a role that dies leaves its files behind
		"GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = long
	return cmd
}

func runAs(t *testing.T, as, pattern string, args ...string) (string, error) {
	t.Helper()
	out, err := self(t, as, pattern, args...).CombinedOutput()
	return string(out), err
}

// TestRole is the body of the processes that the other tests here run.
func TestRole(t *testing.T) {
	as := os.Getenv(role)
	if as == "" {
		return // not a test by itself
	}
	if as == "bad argument" {
		servers.Redis(t, servers.RedisArgs("--no-such-option", "1"))
		return
	}
	shared := servers.SharedRedis(t)
	for _, r := range append(servers.Redises(t, 2), servers.Redis(t), shared) {
		fmt.Println("server", r.PID())
	}
	fmt.Println("dir", shared.Dir())
	fmt.Println("up")
	switch as {
	case "pass":
	case "fail":
		t.Fatal("as it should")
	case "panic":
		panic("as it should")
	case "exit":
		os.Exit(3)
	default: // killed from outside
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

var (
	pidLine = regexp.MustCompile(`(?m)^server (\d+)$`)
	dirLine = regexp.MustCompile(`(?m)^dir (.+)$`)
)

// pidsIn returns the servers that a role said it started.
func pidsIn(t *testing.T, out string) []int {
	t.Helper()
	var pids []int
	for _, m := range pidLine.FindAllStringSubmatch(out, -1) {
		pids = append(pids, must[int](t)(strconv.Atoi(m[1])))
	}
	if len(pids) != 4 {
		t.Fatalf("%d servers started, want 4:\n%s", len(pids), out)
	}
	return pids
}

func TestNoServerSurvivesARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		as    string
		clean bool // the run ends in Main, which removes what was shared
		code  int

		timeout time.Duration // 0: none
	}{
		{as: "pass", clean: true, code: 0},
		{as: "fail", clean: true, code: 1},
		{as: "panic", code: 2},
		{as: "exit", code: 3},
		{as: "time out", timeout: time.Second, code: 2},
	} {
		t.Run(c.as, func(t *testing.T) {
			t.Parallel()
			run := func() string {
				cmd := self(t, c.as, "TestRole", "-test.timeout="+c.timeout.String())
				stdin := must[io.WriteCloser](t)(cmd.StdinPipe())
				defer stdin.Close()
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.code {
					t.Fatalf("run: %v, want exit code %d:\n%s", err, c.code, out)
				}
				return string(out)
			}
			out := run()
			for ; !strings.Contains(out, "\nup\n") && c.timeout > 0 && c.timeout < long; out = run() {
				c.timeout *= 2 // it was over before the servers ran
			}
			for _, pid := range pidsIn(t, out) {
				if c.clean && servers.Alive(pid) {
					t.Errorf("server %d survives a run that ended in order", pid)
				}
				until(t, fmt.Sprintf("end of server %d", pid), func() bool { return !servers.Alive(pid) })
			}
			dir := dirLine.FindStringSubmatch(out)[1]
			_, err := os.Stat(dir)
			if c.clean && !os.IsNotExist(err) {
				t.Errorf("directory of the shared server is left: %v", err)
			}
		})
	}
}

func TestNoServerSurvivesKillOfTheTest(t *testing.T) {
	t.Parallel()
	cmd := self(t, "killed", "TestRole")
	stdin := must[io.WriteCloser](t)(cmd.StdinPipe())
	defer stdin.Close()
	stdout := must[io.ReadCloser](t)(cmd.StdoutPipe())
	ok(t, cmd.Start())
	var out strings.Builder
	for in := bufio.NewScanner(stdout); in.Scan() && in.Text() != "up"; {
		fmt.Fprintln(&out, in.Text())
	}
	pids := pidsIn(t, out.String())
	if i := slices.IndexFunc(pids, func(pid int) bool { return !servers.Alive(pid) }); i >= 0 {
		t.Fatalf("server %d doesn't run", pids[i])
	}
	ok(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, pid := range pids {
		until(t, fmt.Sprintf("end of server %d", pid), func() bool { return !servers.Alive(pid) })
	}
}

func TestServerEndsWithItsTest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(*servers.RedisServer) error
	}{
		{"running", func(*servers.RedisServer) error { return nil }},
		{"paused", func(r *servers.RedisServer) error { return r.Pause() }},
		{"killed", func(r *servers.RedisServer) error { return r.Kill() }},
		{"restarted", func(r *servers.RedisServer) error { return r.Restart() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var pid int
			var dir string
			t.Run("inner", func(t *testing.T) {
				r := servers.Redis(t)
				ok(t, c.do(r))
				pid, dir = r.PID(), r.Dir()
			})
			if servers.Alive(pid) {
				t.Errorf("process %d survives its test", pid)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("directory %s survives its test", dir)
			}
		})
	}
}

func TestMissingServerFailsTheTest(t *testing.T) {
	t.Parallel()
	for _, test := range []string{"TestRedisKeepsWhatItIsTold", "TestRedisesAreSeparate", "TestSharedServerIsOne"} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			cmd := self(t, "", test)
			cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("the run passes without the server:\n%s", out)
			}
			for _, say := range []string{"--- FAIL: " + test, "apt-get install -y -q --no-install-recommends redis-server", "scripts/servers.sh"} {
				if !strings.Contains(string(out), say) {
					t.Errorf("output lacks %q:\n%s", say, out)
				}
			}
			if strings.Contains(string(out), "SKIP") {
				t.Errorf("a test is skipped:\n%s", out)
			}
		})
	}
}

func TestSharedServerNeedsMain(t *testing.T) {
	t.Parallel()
	out, err := runAs(t, "no main", "TestSharedServerIsOne")
	if err == nil || !strings.Contains(out, "servers.Main(m)") {
		t.Errorf("run: %v, output:\n%s", err, out)
	}
}
