package runner_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/runner"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"

	_ "github.com/dibslock/dibs/sqlitelock"
)

// TestMain makes the test binary an instance too.
func TestMain(m *testing.M) {
	if os.Args[0] == "instance" {
		os.Exit(standIn())
	}
	flag.Parse()
	if most := flag.Lookup("test.parallel"); most.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = most.Value.Set("6") // they mostly wait
	}
	servers.Main(m)
}

// A fleet is some instances over one store.
type fleet struct {
	*testing.T
	dir string
	url string
	log lines

	tracers trace.TracerProvider // of the instances
}

// lines are what the instances log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// with returns the lines that have all of words.
func (l *lines) with(words ...string) (found []string) {
next:
	for line := range strings.Lines(l.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	dir := t.TempDir()
	f := &fleet{T: t, dir: dir, url: "sqlite://" + filepath.Join(dir, "locks.db")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", &f.log)
		}
	})
	return f
}

// lone is a command that notices if another of its kind runs at the same time,
// and writes down what it was asked for.
func (f *fleet) lone(seconds string, words string) string {
	script := fmt.Sprintf(`cd %s; mkdir in || echo overlap >>overlap; sleep %s; rmdir in; echo %s >>done`, f.dir, seconds, words)
	return fmt.Sprintf("[sh, -c, %q]", script)
}

// gated is a command that goes on until the gate is opened.
func (f *fleet) gated() string {
	return fmt.Sprintf("[sh, -c, %q]", fmt.Sprintf("until [ -e %s/gate ]; do sleep 0.02; done", f.dir))
}

// open lets them all go, and those that come.
func (f *fleet) open() {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "gate"), nil, 0o600); err != nil {
		f.Fatal(err)
	}
}

// done returns what the commands wrote down.
func (f *fleet) done() []string {
	f.Helper()
	if data, err := os.ReadFile(filepath.Join(f.dir, "overlap")); err == nil {
		f.Errorf("two ran at once: %s", data)
	}
	data, err := os.ReadFile(filepath.Join(f.dir, "done"))
	if err != nil && !os.IsNotExist(err) {
		f.Fatal(err)
	}
	return strings.Fields(string(data))
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("test", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts an instance that has these jobs.
func (f *fleet) start(jobs string, offset time.Duration) *runner.Runner {
	f.Helper()
	store, err := driver.Open(f.Context(), f.url)
	if err != nil {
		f.Fatal(err)
	}
	r, err := runner.New(f.Context(), runner.Options{
		Config:      parse(f.T, "version: 1\njobs:\n"+jobs),
		Store:       store,
		Log:         slog.New(slog.NewTextHandler(&f.log, nil)),
		ClockOffset: offset,
		Tracers:     f.tracers,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			f.Errorf("close: %v", err)
		}
	})
	return r
}

// ask asks for a run: again, if the store was too slow.
func (f *fleet) ask(r *runner.Runner, q runner.Request) (runner.Accepted, error) {
	f.Helper()
	for {
		a, err := r.Trigger(f.Context(), q)
		if !errors.Is(err, context.DeadlineExceeded) || f.Context().Err() != nil {
			return a, err
		}
	}
}

// trigger asks for a run that must be accepted.
func (f *fleet) trigger(r *runner.Runner, job string) book.Run {
	f.Helper()
	a, err := f.ask(r, runner.Request{Job: job, Trigger: "http"})
	if err != nil {
		f.Fatalf("%s: %v", job, err)
	}
	return a.Run
}

// runs waits until a run has begun.
func (f *fleet) runs(r *runner.Runner, id string) {
	f.Helper()
	f.await("it runs", func() bool {
		run, err := r.Book().Run(f.Context(), id)
		return err == nil && run.State == book.Running
	})
}

// patience is how long is waited for what must happen. A machine that does other
// things too takes seconds to start a process.
const patience = 5 * time.Minute

// end waits for the end of a run.
func (f *fleet) end(r *runner.Runner, id string) book.Run {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	run, err := r.Wait(ctx, id)
	for errors.Is(err, book.ErrNone) && ctx.Err() == nil { // a retry that is about to be written
		time.Sleep(10 * time.Millisecond)
		run, err = r.Wait(ctx, id)
	}
	if err != nil || !run.State.Ended() {
		f.Fatalf("the run %s is %s after %v: %v", id, run.State, patience, err)
	}
	return run
}

// await polls what no event tells of; detail says what is amiss.
func (f *fleet) await(what string, done func() bool, detail ...func() string) {
	f.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if !time.Now().After(deadline) {
			continue
		}
		for _, say := range detail {
			what += ": " + say()
		}
		f.Fatalf("still not after %v: %s", patience, what)
	}
}
