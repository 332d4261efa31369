package executor_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/executor"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/memlock"
)

func TestMain(m *testing.M) {
	reaper := guard.NewReaper()
	code := m.Run()
	reaper.Stop()
	os.Exit(code)
}

// held returns a lease and how to take it away.
func held(t *testing.T, ttl time.Duration) (*dibs.Lease, func()) {
	t.Helper()
	c, err := dibs.New(memlock.New(memlock.Options{}), &dibs.Options{Settings: dibs.Settings{TTL: ttl}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	lease, err := c.Mutex("a").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease, func() {
		if err := c.Revoke(t.Context(), dibs.Revocation{Name: "a", Token: lease.Token()}); err != nil {
			t.Error(err)
		}
	}
}

func limits(ttl time.Duration) executor.Limits {
	return executor.Limits{Grace: ttl / 4, Margin: executor.Margin(ttl)}
}

func sh(script string) executor.Command {
	return executor.Command{Argv: []string{"sh", "-c", script}, Env: os.Environ()}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, out string
		want              executor.Result
	}{
		{"success", "echo one; echo two >&2", "one\ntwo\n", executor.Result{End: executor.Done, OK: true}},
		{"failure", "exit 7", "", executor.Result{End: executor.Done, Code: 7, Reason: "exit code 7"}},
		{"signal", "kill -9 $$", "", executor.Result{End: executor.Done, Code: 137, Reason: "exit code 137"}},
		{"stdin", "cat; echo end", "end\n", executor.Result{End: executor.Done, OK: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lease, _ := held(t, 30*time.Second)
			out := executor.NewTail(1000)
			got := sh(tt.script).Run(t.Context(), lease, limits(30*time.Second), out)
			if _, data := out.End(); got != tt.want || string(data) != tt.out {
				t.Errorf("%+v, %q", got, data)
			}
		})
	}
}

func TestWhatIsNoCommand(t *testing.T) {
	t.Parallel()
	lease, _ := held(t, 30*time.Second)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for argv, code := range map[string]int{"nothing-of-that-name": 127, text: 126} {
		got := executor.Command{Argv: []string{argv}}.Run(t.Context(), lease, limits(30*time.Second), executor.NewTail(10))
		if got.End != executor.Broken || got.Code != code || !strings.Contains(got.Reason, argv) {
			t.Errorf("%s: %+v", argv, got)
		}
	}
}

// stubborn writes its id, and can only be killed.
const stubborn = `trap "" TERM; echo $$; while :; do sleep 0.05; done`

// A script is what a command says, and tells when there is a line of it.
type script struct {
	*executor.Tail
	line chan struct{} // closed then
	once sync.Once
}

func newScript() *script {
	return &script{Tail: executor.NewTail(100), line: make(chan struct{})}
}

func (s *script) Write(p []byte) (int, error) {
	n, err := s.Tail.Write(p)
	if bytes.Contains(p, []byte("\n")) {
		s.once.Do(func() { close(s.line) })
	}
	return n, err
}

// then calls f when the command has said a line: it is deaf by then.
func (s *script) then(f func()) {
	go func() { // ends with f
		select {
		case <-s.line:
		case <-time.After(time.Minute): // the command is ended all the same
		}
		f()
	}()
}

func gone(t *testing.T, out *script) {
	t.Helper()
	_, data := out.End()
	pid := strings.TrimSpace(string(data))
	if pid == "" || !ended(pid) {
		t.Errorf("the process %q runs on", pid)
	}
}

func ended(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestATimeoutKills(t *testing.T) {
	t.Parallel()
	lease, _ := held(t, 30*time.Second)
	l := limits(30 * time.Second)
	l.Timeout, l.Grace = 200*time.Millisecond, 100*time.Millisecond
	for {
		out := newScript()
		if got := sh(stubborn).Run(t.Context(), lease, l, out); got.End != executor.Timeout {
			t.Fatalf("%+v", got)
		}
		if _, data := out.End(); len(data) > 0 || l.Timeout > time.Minute {
			gone(t, out)
			return
		}
		l.Timeout *= 2 // it was over before the command was deaf
	}
}

func TestALossKillsBeforeTheEndOfTrust(t *testing.T) {
	t.Parallel()
	lease, revoke := held(t, 2*time.Second)
	out := newScript()
	out.then(revoke)
	got := sh(stubborn).Run(t.Context(), lease, limits(2*time.Second), out)
	if got.End != executor.Lost || !strings.Contains(got.Reason, "revoked") {
		t.Errorf("%+v", got)
	}
	gone(t, out)
}

func TestACancelStops(t *testing.T) {
	t.Parallel()
	lease, _ := held(t, 30*time.Second)
	ctx, cancel := context.WithCancelCause(t.Context())
	l := limits(30 * time.Second)
	l.Grace = 100 * time.Millisecond
	out := newScript()
	out.then(func() { cancel(errors.New("ann asked for it")) })
	if got := sh(stubborn).Run(ctx, lease, l, out); got.End != executor.Stopped || got.Reason != "ann asked for it" {
		t.Errorf("%+v", got)
	}
	gone(t, out)
}

// TestOutputIsBoundedAndNeverBlocks: much output, and a descendant that keeps the
// pipe open after the end.
func TestOutputIsBoundedAndNeverBlocks(t *testing.T) {
	t.Parallel()
	lease, _ := held(t, 30*time.Second)
	out := executor.NewTail(1 << 10)
	got := sh("setsid sleep 5 & head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last").Run(t.Context(), lease, limits(30*time.Second), out)
	start, data := out.End()
	if !got.OK || len(data) != 1<<10 || start != 20000006-1<<10 || !strings.HasSuffix(string(data), "x\nlast\n") {
		t.Errorf("%+v, %d bytes after %d", got, len(data), start)
	}
}

// A busy is a writer that is kept from its work: its first Write opens a gate for
// the command, and ends a while after that.
type busy struct {
	out  bytes.Buffer
	gate string
	once sync.Once
}

func (b *busy) Write(p []byte) (int, error) {
	b.once.Do(func() {
		_ = os.WriteFile(b.gate, nil, 0o600)
		for !ended(strings.TrimSpace(string(p))) {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(4 * executor.LastOutput) // too short would only be weaker
	})
	return b.out.Write(p)
}

// TestAllThatACommandWroteIsRead, however late that is done, and though a
// descendant has the pipe, or writes to it for ever.
func TestAllThatACommandWroteIsRead(t *testing.T) {
	t.Parallel()
	for name, descendant := range map[string]string{"alone": "", "quiet": "setsid sleep 5 &", "loud": "setsid yes late &"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lease, _ := held(t, 30*time.Second)
			out := &busy{gate: filepath.Join(t.TempDir(), "gate")}
			script := "echo $$; until [ -e " + out.gate + " ]; do sleep 0.02; done; echo last; " + descendant
			if got := sh(script).Run(t.Context(), lease, limits(30*time.Second), out); !got.OK {
				t.Errorf("%+v", got)
			}
			_, rest, _ := strings.Cut(out.out.String(), "\n")
			if !strings.HasPrefix(rest, "last\n") || name != "loud" && rest != "last\n" {
				t.Errorf("after its first line the command was heard to say %.100q", rest)
			}
		})
	}
}

// TestAKilledGuardianTakesItsOwnAlone: the other job runs on.
func TestAKilledGuardianTakesItsOwnAlone(t *testing.T) {
	t.Parallel()
	lease, _ := held(t, 30*time.Second)
	dir := t.TempDir()
	other := make(chan executor.Result)
	go func() {
		other <- sh("until [ -e "+dir+"/go ]; do sleep 0.02; done").Run(t.Context(), lease, limits(30*time.Second), executor.NewTail(10))
	}()
	got := sh("sleep 60 & kill -9 $PPID; sleep 60").Run(t.Context(), lease, limits(30*time.Second), executor.NewTail(10))
	if got.OK || !strings.Contains(got.Reason, "guardian") {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-other; !got.OK {
		t.Errorf("the other: %+v", got)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		case "/away":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/bad":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = w.Write([]byte(r.Method + " " + r.Header.Get("Dibs-Fence")))
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	request := func(path string) executor.Request {
		return executor.Request{Method: "PUT", URL: server.URL + path, Header: http.Header{"Dibs-Fence": {"7"}}, Timeout: time.Minute}
	}
	run := func(r executor.Request, ttl time.Duration, revoked bool) (executor.Result, string) {
		lease, revoke := held(t, ttl)
		if revoked {
			revoke()
		}
		out := executor.NewTail(1000)
		got := r.Run(t.Context(), lease, limits(ttl), out)
		_, data := out.End()
		return got, string(data)
	}
	if got, out := run(request("/ok"), 30*time.Second, false); !got.OK || got.Status != 200 || out != "HTTP/1.1 200 OK\nPUT 7" {
		t.Errorf("%+v, %q", got, out)
	}
	if got, _ := run(request("/bad"), 30*time.Second, false); got.OK || got.Status != 500 || got.End != executor.Done {
		t.Errorf("%+v", got)
	}
	if got, _ := run(request("/away"), 30*time.Second, false); got.OK || got.Status != 302 {
		t.Errorf("%+v", got)
	}
	short := request("/hang")
	short.Timeout = 50 * time.Millisecond
	if got, _ := run(short, 30*time.Second, false); got.End != executor.Timeout {
		t.Errorf("%+v", got)
	}
	if got, _ := run(request("/hang"), 2*time.Second, true); got.End != executor.Lost {
		t.Errorf("%+v", got)
	}
}

// TestALossMayOnlyBeWarnedOf: the work runs on to its own end.
func TestALossMayOnlyBeWarnedOf(t *testing.T) {
	t.Parallel()
	lease, revoke := held(t, 2*time.Second)
	dir := t.TempDir()
	l := limits(2 * time.Second)
	l.Warn = true
	go func() {
		revoke()
		<-lease.Context().Done()
		_ = os.WriteFile(dir+"/lost", nil, 0o600)
	}()
	got := sh("until [ -e "+dir+"/lost ]; do sleep 0.02; done; sleep 0.1").Run(t.Context(), lease, l, executor.NewTail(10))
	if !got.OK || lease.Check() == nil {
		t.Errorf("%+v, %v", got, lease.Check())
	}
}
