package guard_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/cmd/internal/guard"
)

// TestMain makes the test binary a stand-in for dibs too: guardtest LIMIT PATH
// ARGV... runs a program under a guardian, for LIMIT if that isn't 0s.
func TestMain(m *testing.M) {
	if os.Args[0] == "guardtest" {
		os.Exit(standIn(os.Args[1], os.Args[2], os.Args[3:]))
	}
	// Under nohup the hangup is ignored, and would be by all that the tests start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(m.Run())
}

// standIn prints the guardian's id and the command's, and then how it ended.
func standIn(limit, path string, argv []string) int {
	reaper := guard.NewReaper()
	defer reaper.Stop()
	d, _ := time.ParseDuration(limit)
	spec := guard.Spec{Path: path, Argv: argv, Env: os.Environ(), Limit: guard.Limit{Term: d / 2, Kill: d}}
	if path := os.Getenv("LIFE"); path != "" {
		f, err := os.Open(path)
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		spec.Life = f
	}
	out := os.NewFile(uintptr(must(unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3))), "out")
	p, err := guard.Start(spec)
	if err != nil {
		fmt.Fprintln(out, "error:", err)
		return 1
	}
	fmt.Fprintln(out, p.Guardian(), p.Pid())
	for over := false; !over; {
		select {
		case <-p.Gone():
			over = true
		case sig := <-p.Relayed():
			fmt.Fprintln(out, "relayed:", sig)
			_ = p.Signal(sig)
		case sig := <-p.Stopped():
			fmt.Fprintln(out, "stopped:", sig)
			_ = p.Signal(unix.SIGCONT)
		}
	}
	p.Close()
	code, err := p.Code()
	fmt.Fprintln(out, "ended:", code, p.Overdue(), errors.Is(err, guard.ErrUnguarded))
	return 0
}

func must(n int, err error) int {
	if err != nil {
		panic(err)
	}
	return n
}

const patience = time.Minute

// A crew is a stand-in, its guardian, and all that runs under them.
type crew struct {
	t             *testing.T
	dir           string
	cmd           *exec.Cmd
	out           *bufio.Reader
	guardian, pid int
}

// crewOf starts a stand-in. What runs for it is known by DIR in its environment,
// and is ended with the test: nothing may be left.
func crewOf(t *testing.T, limit time.Duration, script string, env ...string) *crew {
	t.Helper()
	c := muster(t, []string{limit.String(), "/bin/sh", "sh", "-c", script}, env...)
	if _, err := fmt.Sscan(c.line(), &c.guardian, &c.pid); err != nil {
		t.Fatal(err)
	}
	return c
}

// muster starts a stand-in with arguments of the test's.
func muster(t *testing.T, args []string, env ...string) *crew {
	t.Helper()
	return musterWith(t, nil, args, env...)
}

// musterWith gives it a descriptor 3 too.
func musterWith(t *testing.T, extra *os.File, args []string, env ...string) *crew {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &crew{t: t, dir: dir, cmd: &exec.Cmd{
		Path: exe, Args: append([]string{"guardtest"}, args...), Dir: dir,
		Env: append(append(os.Environ(), "DIR="+dir), env...), Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}}
	if extra != nil {
		c.cmd.ExtraFiles = []*os.File{extra}
	}
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		for _, pid := range c.mates() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = c.cmd.Wait()
	})
	c.out = bufio.NewReader(out)
	return c
}

// line reads what the stand-in says next.
func (c *crew) line() string {
	c.t.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%q, %v", s, err)
	}
	return strings.TrimSpace(s)
}

// ended checks the last words of the stand-in.
func (c *crew) ended(want string) {
	c.t.Helper()
	if got := c.line(); got != "ended: "+want {
		c.t.Fatalf("%s, want ended: %s", got, want)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// kill sends KILL, or another signal.
func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// mates are the live processes of the crew, beside the stand-in and the guardian,
// whose environment is empty.
func (c *crew) mates() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte("DIR="+c.dir+"\x00")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if pid != c.cmd.Process.Pid && running(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// running tells whether a process is there, and more than a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z ")) && !bytes.Contains(stat, []byte(") X "))
}

// await polls what no event tells of.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not after %v: %s", patience, what)
		}
	}
}

// written waits until n files of the crew are there.
func (c *crew) written(names ...string) {
	c.t.Helper()
	for _, name := range names {
		await(c.t, name+" is written", func() bool {
			_, err := os.Stat(filepath.Join(c.dir, name))
			return err == nil
		})
	}
}

// allOf waits until the files are there, or nothing runs that could make them, and
// tells which.
func (c *crew) allOf(names ...string) (all bool) {
	c.t.Helper()
	await(c.t, "all of it runs, or nothing", func() bool {
		runs := len(c.mates()) > 0
		all = true
		for _, name := range names {
			_, err := os.Stat(filepath.Join(c.dir, name))
			all = all && err == nil
		}
		return all || !runs
	})
	return all
}

// none waits until nothing of the crew is left but the stand-in.
func (c *crew) none() {
	c.t.Helper()
	await(c.t, "nothing is left", func() bool { return len(c.mates()) == 0 && !running(c.guardian) })
}
