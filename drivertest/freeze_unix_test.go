//go:build unix

package drivertest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/memlock"
)

const (
	frozenTTL  = time.Second
	freezes    = 50 // in an ordinary run
	freezeLoad = 10 // children at once
)

func init() { frozen = holdFrozen }

// holdFrozen takes a lease, says so, and after the next line of input asks Check
// what it thinks of it, before anything else.
func holdFrozen() int {
	client, err := dibs.New(memlock.New(memlock.Options{}), &dibs.Options{Settings: dibs.Settings{TTL: frozenTTL}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	lease, err := client.Mutex("frozen").Lock(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	input := bufio.NewReader(os.Stdin)
	fmt.Println("held")
	if _, err := input.ReadString('\n'); err != nil {
		return 1
	}
	first := lease.Check()
	fmt.Println(errors.Is(first, dibs.ErrLost), first)
	return 0
}

// TestTortureByFreezing stops real processes that hold a lease for longer than
// its TTL: the first Check after they go on must say that it is lost. That the
// lease's context has ended by then is not certain, which is why there is Check.
func TestTortureByFreezing(t *testing.T) {
	t.Parallel()
	enough := func(n int64) bool { return n >= freezes }
	if text := os.Getenv("DIBS_TORTURE_FOR"); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("DIBS_TORTURE_FOR: %v", err)
		}
		start := time.Now()
		enough = func(int64) bool { return time.Since(start) >= long }
	}
	var (
		wg   sync.WaitGroup
		n, k atomic.Int64 // freezes begun, and survived in knowledge
	)
	for range freezeLoad {
		wg.Go(func() { // ends when there were enough
			for !t.Failed() && !enough(n.Add(1)-1) {
				if err := freeze(t.Context()); err != nil {
					t.Error(err)
					return
				}
				k.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d processes were frozen and knew on the first look that their lease was lost", k.Load())
	if k.Load() == 0 {
		t.Error("no process was frozen")
	}
}

// freeze stops one process that holds a lease, and hears what it thinks then.
func freeze(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), frozenEnv+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	said, err := stopped(cmd.Process.Pid, in, bufio.NewReader(out))
	cancel() // it has said what there was to say, or never will
	_ = cmd.Wait()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, &stderr)
	}
	if !strings.HasPrefix(said, "true ") {
		return fmt.Errorf("frozen for %v with a TTL of %v, the first Check said: %s", frozenTTL*13/10, frozenTTL, said)
	}
	return nil
}

func stopped(pid int, in io.Writer, out *bufio.Reader) (string, error) {
	if line, err := out.ReadString('\n'); err != nil || line != "held\n" {
		return "", fmt.Errorf("the child said %q: %w", line, err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return "", err
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if err == nil && status.Stopped() {
			break
		}
		if err != syscall.EINTR {
			return "", fmt.Errorf("waiting for the child to stop: %v, %w", status, err)
		}
	}
	time.Sleep(frozenTTL * 13 / 10)
	if _, err := io.WriteString(in, "go\n"); err != nil {
		return "", err
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		return "", err
	}
	line, err := out.ReadString('\n')
	return strings.TrimSpace(line), err
}
