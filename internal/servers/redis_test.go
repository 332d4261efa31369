package servers_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/internal/servers"
)

// must returns a function that fails the test on an error and else returns the
// value.
func must[V any](t *testing.T) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want runs a command on the server and fails the test on any other reply.
func want(t *testing.T, r *servers.RedisServer, reply any, args ...any) {
	t.Helper()
	if got := must[any](t)(r.Do(args...)); got != reply {
		t.Fatalf("%v = %#v, want %#v", args, got, reply)
	}
}

func TestRedisKeepsWhatItIsTold(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	want(t, r, "OK", "SET", "k", "v")
	want(t, r, "v", "GET", "k")
	want(t, r, int64(1), "DEL", "k")
	want(t, r, nil, "GET", "k")
}

func TestRestartKeepsTheAddress(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*servers.RedisServer) error{
		"stopped": func(r *servers.RedisServer) error { return r.Stop() },
		"killed":  func(r *servers.RedisServer) error { return r.Kill() },
		"running": func(*servers.RedisServer) error { return nil },
		"paused":  func(r *servers.RedisServer) error { return r.Pause() },
	}
	kinds := []struct {
		name string
		opts []servers.RedisOption
		left any // of what was written before the restart
	}{
		{name: "volatile", left: nil},
		{name: "durable", opts: []servers.RedisOption{servers.Durable()}, left: "v"},
	}
	for _, kind := range kinds {
		for end, do := range ends {
			t.Run(kind.name+" "+end, func(t *testing.T) {
				t.Parallel()
				r := servers.Redis(t, kind.opts...)
				addr, pid := r.Addr(), r.PID()
				want(t, r, "OK", "SET", "k", "v")
				ok(t, do(r))
				ok(t, r.Restart())
				if r.Addr() != addr {
					t.Errorf("address is %s after the restart, was %s", r.Addr(), addr)
				}
				if r.PID() == pid {
					t.Errorf("process %d is still the one", pid)
				}
				want(t, r, kind.left, "GET", "k")
			})
		}
	}
}

func TestServerThatIsDownRefuses(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	done := r.Done()
	ok(t, r.Kill())
	<-done
	if servers.Alive(r.PID()) {
		t.Errorf("process %d runs after Kill", r.PID())
	}
	if v, err := r.Do("PING"); err == nil {
		t.Errorf("PING = %v from a server that is down", v)
	}
	ok(t, r.Kill())
	ok(t, r.Stop())
	if err := r.Pause(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Pause of a server that is down: %v, want os.ErrProcessDone", err)
	}
}

func TestPausedServerAnswersAfterResume(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	c := must[*servers.RESP](t)(r.Dial())
	defer c.Close()
	ok(t, c.SetDeadline(time.Now().Add(time.Minute)))
	must[any](t)(c.Do("PING"))

	ok(t, r.Pause())
	ok(t, r.Pause())
	ok(t, c.Send("SET", "k", "v"))
	for _, file := range must[[]string](t)(filepath.Glob(proc(r.PID(), "task/*/stat"))) {
		if state := field(must[[]byte](t)(os.ReadFile(file)), 0); state != "T" {
			t.Errorf("state of a thread of a paused process is %s, want T", state)
		}
	}
	ok(t, r.Resume())
	ok(t, r.Resume())
	if v := must[any](t)(c.Receive()); v != "OK" {
		t.Errorf("reply after Resume is %v, want OK", v)
	}
	want(t, r, "v", "GET", "k")
}

func TestRedisesAreSeparate(t *testing.T) {
	t.Parallel()
	rs := servers.Redises(t, 5)
	addrs := map[string]bool{}
	for i, r := range rs {
		addrs[r.Addr()] = true
		want(t, r, "OK", "SET", "me", i)
	}
	if len(addrs) != 5 {
		t.Fatalf("five servers have %d addresses", len(addrs))
	}
	ok(t, rs[0].Kill())
	want(t, rs[1], "1", "GET", "me")
}

func TestSharedServerIsOne(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := servers.SharedRedis(t), servers.SharedRedis(t)
			if a != b {
				t.Error("two shared servers")
			}
			want(t, a, "PONG", "PING")
		})
	}
}

func TestPortOfAStrangerIsPassedOver(t *testing.T) {
	t.Parallel()
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	stranger := l.Addr().(*net.TCPAddr).Port
	free := must[int](t)(servers.TakePort())
	r := servers.RedisOnPorts(t, stranger, free)
	if r.Port() != free {
		t.Errorf("port is %d, want %d", r.Port(), free)
	}
}

func TestRestartWaitsForItsPort(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	ok(t, r.Kill())
	l := must[net.Listener](t)(net.Listen("tcp", r.Addr()))
	defer l.Close()
	restarted := make(chan error, 1)
	go func() { restarted <- r.Restart() }() // ends with Restart, awaited below
	// Nothing tells that Restart has met the stranger; an early end of the wait
	// would make the test weaker, never wrong.
	select {
	case err := <-restarted:
		t.Fatalf("Restart on a port that is taken: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	ok(t, l.Close())
	ok(t, <-restarted)
	want(t, r, "PONG", "PING")
}

func TestArgumentsReachTheServer(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t, servers.RedisArgs("--maxmemory", "5mb"))
	got := must[any](t)(r.Do("CONFIG", "GET", "maxmemory")).([]any)
	if len(got) != 2 || got[1] != "5242880" {
		t.Errorf("CONFIG GET maxmemory = %v", got)
	}
}

func TestErrorOfTheServerIsAReplyError(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	want(t, r, int64(1), "RPUSH", "list", "a")
	_, err := r.Do("INCR", "list")
	reply, is := errors.AsType[servers.ReplyError](err)
	if !is || !strings.HasPrefix(string(reply), "WRONGTYPE") {
		t.Errorf("INCR of a list: %v, want a ReplyError WRONGTYPE", err)
	}
	ok(t, r.Kill())
	_, err = r.Do("PING")
	if _, is := errors.AsType[servers.ReplyError](err); is || err == nil {
		t.Errorf("PING of a server that is down: %v, want an error of the connection", err)
	}
}

func TestBadArgumentFailsWithTheServersWords(t *testing.T) {
	t.Parallel()
	out, err := runAs(t, "bad argument", "TestRole")
	if err == nil || !strings.Contains(out, "no-such-option") {
		t.Errorf("run: %v, output:\n%s", err, out)
	}
}
