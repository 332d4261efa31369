package fencetest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/fence"
	"github.com/dibslock/dibs/internal/servers"
	_ "github.com/dibslock/dibs/redislock"
)

// TestPausedHolder is the story that fences are for, with a real process. The old
// holder has the lock, reads 100, and is frozen (SIGSTOP) for longer than its TTL.
// The new holder takes over, adds 50, and is done. The old one wakes up in the middle
// of its step and writes back 100 - 30. With the guard that write is refused and 150
// stands; without it 70 stands and an update is lost.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	stories := map[string]func(t *testing.T) (url string){
		"http":  bank,
		"redis": redisWithAccount,
	}
	for _, k := range kinds {
		stories[k.name] = k.withAccount
	}
	for name, setUp := range stories {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s guarded=%v", name, guarded), func(t *testing.T) {
				t.Parallel()
				url := setUp(t)
				outcome, balance := pausedHolder(t, name, url, guarded)
				wantOutcome, want := "wrote", 70
				if guarded {
					wantOutcome, want = "stale", 150
				}
				if outcome != wantOutcome || balance != want {
					t.Errorf("the old holder %s, and the balance is %d; want: %s, %d", outcome, balance, wantOutcome, want)
				}
			})
		}
	}
}

// ttl is the old holder's: all that it has to keep is its fence.
const ttl = 600 * time.Millisecond

// pausedHolder plays the story and returns what the old holder says at its end, and
// what stands then.
func pausedHolder(t *testing.T, kind, url string, guarded bool) (outcome string, balance int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	locks := "redis://" + servers.SharedRedis(t).Addr() + "/0?prefix=" + freshName()
	old := startOldHolder(t, kind, url, locks, guarded)
	if line := old.line(t); line != "read 100" {
		t.Fatalf("the old holder: %s", line)
	}
	must(t, old.cmd.Process.Signal(syscall.SIGSTOP))

	client, err := dibs.Open(ctx, locks, nil) // it keeps its lease, however slow the machine is
	must(t, err)
	defer func() { must(t, client.Close(ctx)) }()
	lease, err := client.Mutex("ann").Lock(ctx) // waits for the end of the frozen one's TTL
	must(t, err)
	a, err := openAccount(kind, url, guarded)
	must(t, err)
	defer a.close()
	n, err := a.read(ctx, lease)
	must(t, err)
	must(t, a.write(ctx, lease, n+50))

	must(t, old.cmd.Process.Signal(syscall.SIGCONT))
	_, err = fmt.Fprintln(old.stdin, "go on")
	must(t, err)
	outcome = old.line(t)
	balance, err = a.read(ctx, lease)
	must(t, err)
	must(t, lease.Release(ctx))
	return outcome, balance
}

// What the test tells its child in the environment.
const (
	roleVar    = "FENCETEST_OLD_HOLDER_OF" // the kind of account
	urlVar     = "FENCETEST_URL"
	locksVar   = "FENCETEST_LOCKS"
	guardedVar = "FENCETEST_GUARDED"
)

type child struct {
	cmd   *exec.Cmd
	stdin io.Writer
	out   *bufio.Scanner
}

func startOldHolder(t *testing.T, kind, url, locks string, guarded bool) *child {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+kind, urlVar+"="+url, locksVar+"="+locks, guardedVar+"="+strconv.FormatBool(guarded))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() // frozen or not
		cmd.Wait()
	})
	return &child{cmd, stdin, bufio.NewScanner(stdout)}
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.out.Scan() {
		t.Fatalf("the old holder has ended: %v", c.out.Err())
	}
	return c.out.Text()
}

// oldHolder is the child's main: it reads under the lock and says so, and when it
// is told to go on it writes, whatever has become of its lease meanwhile: as code
// does that is in the middle of a step.
func oldHolder() (exit int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	client, err := dibs.Open(ctx, os.Getenv(locksVar), &dibs.Options{Settings: dibs.Settings{TTL: ttl}})
	if err != nil {
		say("open: %v", err)
		return 1
	}
	defer client.Close(ctx)
	lease, err := client.Mutex("ann").Lock(ctx)
	for errors.Is(err, dibs.ErrUnknown) && ctx.Err() == nil { // a slow machine answers too late for so short a TTL
		lease, err = client.Mutex("ann").Lock(ctx)
	}
	if err != nil {
		say("lock: %v", err)
		return 1
	}
	a, err := openAccount(os.Getenv(roleVar), os.Getenv(urlVar), os.Getenv(guardedVar) == "true")
	if err != nil {
		say("account: %v", err)
		return 1
	}
	defer a.close()
	n, err := a.read(ctx, lease)
	if err != nil {
		say("read: %v", err)
		return 1
	}
	say("read %d", n)
	bufio.NewReader(os.Stdin).ReadString('\n')
	switch err := a.write(ctx, lease, n-30); {
	case err == nil:
		say("wrote")
	case errors.Is(err, fence.ErrStale):
		say("stale")
	default:
		say("write: %v", err)
	}
	return 0
}

// withAccount makes a database in which ann has 100.
func (k kind) withAccount(t *testing.T) string {
	source := k.fresh(t)
	db := k.dial(t, source)
	for _, create := range append(k.schema(), "INSERT INTO accounts (name, balance, fence) VALUES ('ann', 100, 0)") {
		_, err := db.Exec(create)
		must(t, err)
	}
	must(t, fence.SQL{Dialect: k.dialect}.Create(t.Context(), db))
	return source
}

// redisWithAccount starts a server in which ann has 100.
func redisWithAccount(t *testing.T) string {
	r := servers.Redis(t)
	_, err := r.Do("SET", redisKey, "100")
	must(t, err)
	return r.Addr()
}

// bank is a server at which ann has 100. A request with a fence
// goes through a Gate.
func bank(t *testing.T) string {
	var balance atomic.Int64
	balance.Store(100)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			text, err := io.ReadAll(r.Body)
			n, bad := strconv.ParseInt(string(text), 10, 64)
			if err = errors.Join(err, bad); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			balance.Store(n)
		}
		fmt.Fprint(w, balance.Load())
	})
	guarded := (&fence.Gate{Name: func(*http.Request) string { return "ann" }}).Wrap(handler)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(fence.HeaderFence) != "" {
			guarded.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r) // the control run
	}))
	t.Cleanup(s.Close)
	return strings.TrimSuffix(s.URL, "/")
}
