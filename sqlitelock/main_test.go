package sqlitelock_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/sqlitelock"
)

// roleEnv makes the test binary play another process: see play.
const roleEnv = "SQLITELOCK_TEST_ROLE"

func TestMain(m *testing.M) {
	drivertest.StormMain()
	if role := os.Getenv(roleEnv); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the laws mostly sleep
	os.Exit(m.Run())
}

// play is what another process does: it says a line for each step.
func play(role string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := sqlitelock.Open(ctx, args[0], nil)
	if err != nil {
		return err
	}
	switch role {
	case "open": // once
		return s.Close()
	case "hold": // a name until it is killed, or its input ends
		ttl, err := time.ParseDuration(args[2])
		if err != nil {
			return err
		}
		c := mutex(args[1], fmt.Sprintf("holder %d", os.Getpid()))
		c.TTL = ttl
		g, err := s.Acquire(ctx, c)
		if err != nil {
			return err
		}
		fmt.Println("held", g.Token)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return s.Close()
	case "inherit", "disinherit": // hold a name, and leave the life file to a child, or not
		if _, err := s.Acquire(ctx, mutex(args[1], "parent")); err != nil {
			return err
		}
		f, err := s.LifeFile()
		if err != nil {
			return err
		}
		child := exec.Command("sleep", "60")
		if role == "inherit" {
			child.ExtraFiles = []*os.File{f}
		}
		if err := child.Start(); err != nil {
			return err
		}
		fmt.Println("held", child.Process.Pid)
		select {}
	case "contend": // count up under the lock
		return contend(ctx, s, args[1], args[2])
	}
	return fmt.Errorf("no role %q", role)
}

// contend takes the lock again and again; whoever holds it makes a file that must
// not be there yet.
func contend(ctx context.Context, s *sqlitelock.Store, name, witness string) error {
	last := uint64(0)
	for i := range 50 {
		c := mutex(name, fmt.Sprintf("%d %d", os.Getpid(), i))
		c.Patience = 5 * time.Second
		g, err := wait(ctx, s, c)
		if err != nil {
			return err
		}
		if g.Token <= last {
			return fmt.Errorf("token %d after %d", g.Token, last)
		}
		last = g.Token
		f, err := os.OpenFile(witness, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("overlap: %w", err)
		}
		_ = f.Close()
		if err := os.Remove(witness); err != nil {
			return err
		}
		c.Token = g.Token
		if err := s.Release(ctx, c); err != nil {
			return err
		}
	}
	fmt.Println("done", last)
	return s.Close()
}

// wait waits as the core does: watch, ask, and ask again when signalled or after a
// second.
func wait(ctx context.Context, s *sqlitelock.Store, c driver.Claim) (driver.Grant, error) {
	signals, stop, err := s.Watch(ctx, c)
	if err != nil {
		return driver.Grant{}, err
	}
	defer stop()
	for {
		g, err := s.Acquire(ctx, c)
		var held *driver.HeldError
		if !errors.As(err, &held) {
			return g, err
		}
		pause := time.Second
		if held.RetryAfter > 0 {
			pause = min(pause, held.RetryAfter)
		}
		select {
		case <-signals:
		case <-time.After(pause):
		case <-ctx.Done():
			return driver.Grant{}, ctx.Err()
		}
	}
}

// A process is the test binary in a role.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	stdin io.Closer
}

func start(t testing.TB, role string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, role, exec.Command(exe, args...))
}

func startCommand(t testing.TB, role string, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{cmd, bufio.NewScanner(out), in}
}

// says returns what follows word in the next line.
func (p *process) says(t testing.TB, word string) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the process ended without %q", word)
	}
	rest, ok := strings.CutPrefix(p.lines.Text(), word+" ")
	if !ok {
		t.Fatalf("the process said %q, want %q", p.lines.Text(), word)
	}
	return rest
}

func (p *process) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
