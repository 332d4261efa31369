//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// TestScripts runs testdata/*.txtar and testdata/every/*.txtar, each in parallel with a SQLite store of its
// own. Beside testscript's commands they have those below.
func TestScripts(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"testdata", "testdata/every"} {
		runScripts(t, dir, func(env *testscript.Env) error {
			sqliteBed(env)
			return nil
		})
	}
}

// runScripts runs the scripts in dir, each with a store that setUp makes.
func runScripts(t *testing.T, dir string, setUp func(env *testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Defer(func() { sweep(env) })
			return setUp(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"await":   await,
			"signal":  sendSignal,
			"dead":    dead,
			"alive":   alive,
			"holds":   holds,
			"state":   state,
			"serves":  serves,
			"logs":    logs,
			"proxied": proxied,
			"network": network,
			"admin":   admin,
			"server":  server,
		},
	})
}

// sweep ends what a script left behind, which is a failure: but for what is about
// to end by itself.
func sweep(env *testscript.Env) {
	left := within(env.WorkDir)
	for deadline := time.Now().Add(10 * time.Second); left != nil && time.Now().Before(deadline); left = within(env.WorkDir) {
		time.Sleep(20 * time.Millisecond)
	}
	if left == nil {
		return
	}
	for _, pid := range left {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	env.T().Log("processes left behind: ", left)
	env.T().FailNow()
}

// within returns the processes whose directory is dir or in it.
func within(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(cwd+"/", dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// patience is how long a script waits for what must happen.
const patience = time.Minute

// until polls what no event tells of.
func until(ts *testscript.TestScript, what string, done func() bool) {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("still not after %v: %s", patience, what)
		}
	}
}

// exits CODE CMD ARG... runs a command, which must exit with CODE.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if ee := (*exec.ExitError)(nil); errors.As(err, &ee) {
		got = ee.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

// await FILE... waits until each file has a whole line in it: one that is there
// may yet be empty.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		until(ts, file+" is written", func() bool {
			data, err := os.ReadFile(ts.MkAbs(file))
			return err == nil && bytes.HasSuffix(data, []byte("\n"))
		})
	}
}

// pidIn reads a process id, as soon as its file has one.
func pidIn(ts *testscript.TestScript, file string) int {
	await(ts, false, []string{file})
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(file)))
	ts.Check(err)
	return pid
}

// signal NAME FILE sends a signal to the process whose id is in FILE.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	sig := unix.SignalNum("SIG" + args[0])
	if sig == 0 {
		ts.Fatalf("unknown signal %s", args[0])
	}
	ts.Check(unix.Kill(pidIn(ts, args[1]), sig))
}

// stateOf returns the letter of a process's state, or "" if there is none.
func stateOf(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || len(out) == 0 {
		return ""
	}
	return string(out[:1])
}

// running tells whether a process runs; a zombie does not.
func running(pid int) bool {
	s := stateOf(pid)
	return s != "" && s != "Z"
}

// state FILE LETTERS waits until the process whose id is in FILE is in one of the
// states.
func state(ts *testscript.TestScript, _ bool, args []string) {
	pid := pidIn(ts, args[0])
	until(ts, "the process in "+args[0]+" is in state "+args[1], func() bool {
		s := stateOf(pid)
		return s != "" && strings.Contains(args[1], s)
	})
}

// dead FILE waits until the process whose id is in FILE has ended.
func dead(ts *testscript.TestScript, _ bool, args []string) {
	pid := pidIn(ts, args[0])
	until(ts, "the process in "+args[0]+" has ended", func() bool { return !running(pid) })
}

// alive FILE: the process whose id is in FILE runs; with !, it does not.
func alive(ts *testscript.TestScript, neg bool, args []string) {
	if running(pidIn(ts, args[0])) == neg {
		ts.Fatalf("the process in %s: alive is %v", args[0], !neg)
	}
}

// holds KEY N WAITERS waits until KEY has N holders and WAITERS in line.
func holds(ts *testscript.TestScript, _ bool, args []string) {
	exe := lookIn(ts, "dibs")
	until(ts, strings.Join(args, " "), func() bool {
		cmd := exec.Command(exe, "show", "--json", args[0])
		cmd.Env = append(os.Environ(), "DIBS_STORE_URL="+ts.Getenv("DIBS_STORE_URL"))
		out, err := cmd.Output()
		ts.Check(err)
		holders, waiters, _ := bytes.Cut(out, []byte(`"waiters":`))
		count := func(part []byte) string { return strconv.Itoa(bytes.Count(part, []byte(`"age_ms":`))) }
		return count(holders) == args[1] && count(waiters) == args[2]
	})
}

// lookIn finds a program in the script's PATH.
func lookIn(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	ts.Fatalf("no %s in the PATH", name)
	return ""
}

// serves FILE waits until a runner that logs to FILE serves, and sets SERVER.
func serves(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "it serves", func() bool {
		data, _ := os.ReadFile(ts.MkAbs(args[0]))
		_, rest, ok := strings.Cut(string(data), "msg=serving listen=")
		if ok {
			address, _, _ := strings.Cut(rest, " ")
			ts.Setenv("SERVER", "http://"+address)
		}
		return ok
	})
}

// logs FILE TEXT waits until FILE has TEXT.
func logs(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, args[1], func() bool {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(data), args[1])
	})
}
