package runner_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/cmd/internal/runner"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"

	_ "github.com/dibslock/dibs/pglock"
	_ "github.com/dibslock/dibs/redislock"
)

// standIn is an instance in a process of its own, which a test can kill. It
// triggers the jobs whose ids it reads.
func standIn() int {
	reaper := guard.NewReaper()
	defer reaper.Stop()
	ctx := context.Background()
	c, err := config.Parse("test", []byte(os.Getenv("INSTANCE_CONFIG")), os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	store, err := driver.Open(ctx, os.Getenv("INSTANCE_STORE"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	r, err := runner.New(ctx, runner.Options{Config: c, Store: store, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(r.ID())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		a, err := r.Trigger(ctx, runner.Request{Job: in.Text(), Trigger: "cli"})
		if err != nil {
			fmt.Println("error", err)
			continue
		}
		fmt.Println(a.Run.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

// A victim is such a process.
type victim struct {
	*fleet
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	id  string
}

func (f *fleet) victim(url, jobs string) *victim {
	f.Helper()
	v := &victim{fleet: f, cmd: exec.Command("/proc/self/exe")}
	v.cmd.Args = []string{"instance"}
	v.cmd.Env = append(os.Environ(), "INSTANCE_STORE="+url, "INSTANCE_CONFIG=version: 1\njobs:\n"+jobs)
	v.cmd.Stderr = &f.log
	var err error
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		f.Fatal(err)
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	v.out = bufio.NewScanner(out)
	if err := v.cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = unix.Kill(v.cmd.Process.Pid, unix.SIGCONT)
		_ = v.in.Close() // it ends
		time.AfterFunc(30*time.Second, func() { _ = v.cmd.Process.Kill() })
		for v.out.Scan() {
		}
	})
	v.id = v.line()
	return v
}

func (v *victim) line() string {
	v.Helper()
	if !v.out.Scan() {
		v.Fatalf("the instance has ended: %v", v.out.Err())
	}
	return v.out.Text()
}

// ask has it trigger a job, again if the store was too slow, and returns the run's
// id.
func (v *victim) ask(job string) string {
	v.Helper()
	for {
		if _, err := fmt.Fprintln(v.in, job); err != nil {
			v.Fatal(err)
		}
		id := v.line()
		switch {
		case !strings.HasPrefix(id, "error"):
			return id
		case !strings.Contains(id, context.DeadlineExceeded.Error()):
			v.Fatal(id)
		}
	}
}

func (v *victim) signal(sig unix.Signal) {
	v.Helper()
	if err := unix.Kill(v.cmd.Process.Pid, sig); err != nil {
		v.Fatal(err)
	}
}

var spaces atomic.Int64

// TestADeadInstancesRunIsTakenOver on every store, whatever befell the instance:
// its run is marked lost and is retried by another, and by the effects' own log no
// two ever ran at once.
func TestADeadInstancesRunIsTakenOver(t *testing.T) {
	t.Parallel()
	type bed struct {
		url  func(addr string) string
		addr string
	}
	beds := map[string]func(t *testing.T) bed{
		"sqlite": func(t *testing.T) bed {
			file := filepath.Join(t.TempDir(), "locks.db")
			return bed{url: func(string) string { return "sqlite://" + file }}
		},
		"redis": func(t *testing.T) bed {
			n := spaces.Add(1)
			return bed{func(addr string) string { return fmt.Sprintf("redis://%s/0?prefix=space%d", addr, n) }, servers.SharedRedis(t).Addr()}
		},
		"postgres": func(t *testing.T) bed {
			n := spaces.Add(1)
			b := bed{func(addr string) string {
				return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&schema=space%d", addr, n)
			}, servers.SharedPostgres(t).Addr()}
			setup, err := driver.PlanSetup(b.url(b.addr))
			if err == nil {
				_, err = setup.Make(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	}
	for store, make := range beds {
		for _, fault := range []string{"kill", "stop", "partition"} {
			if store == "sqlite" && fault == "partition" {
				continue // a file has no network
			}
			t.Run(store+"/"+fault, func(t *testing.T) {
				t.Parallel()
				b := make(t)
				f := newFleet(t)
				var link *proxy.Proxy
				theirs := b.url(b.addr)
				if fault == "partition" {
					link = proxy.New(t, b.addr)
					theirs = b.url(link.Addr())
				}
				f.url = b.url(b.addr)
				// The first attempt can only be killed; the second is short. A
				// fortieth of the TTL is left for that, on a machine that does
				// other things too.
				effect := fmt.Sprintf(`trap "" TERM; cd %s; n=4; test $DIBS_ATTEMPT = 1 && n=2000
					i=0; while [ $i -lt $n ]; do echo $DIBS_ATTEMPT >>effects; sleep 0.05; i=$((i+1)); done`, f.dir)
				jobs := fmt.Sprintf("  a: { ttl: 10s, grace: 200ms, retries: { max: 5 }, command: [sh, -c, %q] }\n  b: { command: 'true' }\n", effect)
				v := f.victim(theirs, jobs)
				r := f.start(jobs, 0)
				first := v.ask("a")
				f.await("it works", func() bool { return len(f.effects()) > 2 })
				began := time.Now()
				switch fault {
				case "kill":
					v.signal(unix.SIGKILL)
				case "stop":
					v.signal(unix.SIGSTOP)
				case "partition":
					link.Set(proxy.BlackHole)
				}
				lost := f.end(r, first)
				if lost.State != book.Lost || lost.RetriedAs == "" || lost.Instance != v.id {
					t.Fatalf("%+v", lost)
				}
				t.Logf("marked lost after %v; the TTL is 10s", time.Since(began).Round(10*time.Millisecond))
				// Where processors are few, the next attempt may lose its lock as well.
				for last := lost; last.State == book.Lost; {
					next := f.end(r, last.RetriedAs)
					if next.Attempt != last.Attempt+1 || next.RetryOf != last.ID || next.Instance != r.ID() || next.Fence <= last.Fence {
						t.Fatalf("%+v", next)
					}
					if last = next; last.State != book.Lost && last.State != book.Succeeded {
						t.Errorf("%+v", last)
					}
				}
				switch fault {
				case "stop":
					v.signal(unix.SIGCONT)
				case "partition":
					link.Heal()
				}
				if fault != "kill" { // it goes on, and can't say otherwise
					f.await("it is back", func() bool { return len(f.log.with("another instance has taken the run over", first)) > 0 })
					if got, err := r.Book().Run(t.Context(), first); err != nil || got.State != book.Lost || got.RetriedAs != lost.RetriedAs {
						t.Errorf("%+v, %v", got, err)
					}
					if run := f.end(r, v.ask("b")); run.State != book.Succeeded {
						t.Errorf("%+v", run)
					}
				}
				effects := f.effects()
				last := len(effects) - 4
				if !slices.IsSorted(effects) || last < 1 || effects[last] == "1" || effects[last] != effects[last+3] {
					t.Errorf("the effects are %s", effects)
				}
				f.await("it is forgotten or back", func() bool {
					all, err := r.Book().Instances(t.Context())
					return err == nil && (fault != "kill") == (len(all) == 2)
				})
			})
		}
	}
}

func (f *fleet) effects() []string {
	data, _ := os.ReadFile(filepath.Join(f.dir, "effects"))
	return strings.Fields(string(data))
}

// TestAcceptedWorkSurvivesItsInstance: all of a queue runs, in order, also when the
// instance that took it in is killed.
func TestAcceptedWorkSurvivesItsInstance(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	jobs := "  a: { ttl: 10s, on_conflict: queue, retries: { max: 1 }, command: [sh, -c, 'cd " + f.dir + "; sleep 0.1; echo $DIBS_RUN_ID >>done'] }\n"
	v := f.victim(f.url, jobs)
	var want []string
	for range 8 {
		want = append(want, v.ask("a"))
	}
	f.await("some ran", func() bool { return len(f.done()) >= 2 })
	v.signal(unix.SIGKILL)
	r := f.start(jobs, 0)
	var got []string
	for _, id := range want {
		run := f.end(r, id)
		for run.State == book.Lost {
			run = f.end(r, run.RetriedAs)
			id = run.ID
		}
		if run.State != book.Succeeded {
			t.Errorf("%+v", run)
		}
		got = append(got, id)
	}
	// What was killed after its effect has its effect twice: so says its contract.
	seen := strings.Join(f.done(), " ")
	at := 0
	for i, id := range got {
		j := strings.Index(seen, id)
		if j < at {
			t.Errorf("%d: %s is not in its place in %s", i, id, seen)
		}
		at = j
	}
}
