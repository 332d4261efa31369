package interop_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/dibslock/dibs/internal/servers"
)

// other is a client that is not dibs. It remembers its last lock on each name:
// extend and release tell whether it was still its own.
type other interface {
	acquire(name string, ttl time.Duration) bool
	extend(name string, ttl time.Duration) bool
	release(name string) bool
}

// others are all of them.
var others = map[string]func(t testing.TB, r *servers.RedisServer) other{
	"redis-cli":     newCLI,
	"ioredis":       newNode,
	"redis-py":      newPython,
	"redsync":       newRedsync,
	"bsm/redislock": newBSM,
}

// cli is a person, or a shell script, with redis-cli.
type cli struct {
	t    testing.TB
	port string
}

func newCLI(t testing.TB, r *servers.RedisServer) other { return cli{t, strconv.Itoa(r.Port())} }

const (
	extendScript = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
	deleteScript = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
)

func (c cli) says(args ...string) string {
	out, err := exec.Command("redis-cli", append([]string{"-p", c.port}, args...)...).Output()
	if err != nil {
		c.t.Errorf("redis-cli %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (c cli) acquire(name string, ttl time.Duration) bool {
	return c.says("SET", name, "by hand", "NX", "PX", fmt.Sprint(ttl.Milliseconds())) == "OK"
}

func (c cli) extend(name string, ttl time.Duration) bool {
	return c.says("EVAL", extendScript, "1", name, "by hand", fmt.Sprint(ttl.Milliseconds())) == "1"
}

func (c cli) release(name string) bool {
	return c.says("EVAL", deleteScript, "1", name, "by hand") == "1"
}

// program is a client in another language: a process that takes orders.
type program struct {
	t   testing.TB
	in  func(line string)
	out *bufio.Scanner
}

func newPython(t testing.TB, r *servers.RedisServer) other {
	const python = "/usr/bin/python3" // the one that Debian's packages are for
	if err := exec.Command(python, "-c", "import redis").Run(); err != nil {
		t.Fatal("redis-py is not installed: apt-get install -y python3-redis, or run scripts/servers.sh")
	}
	return start(t, python, "testdata/lock.py", strconv.Itoa(r.Port()))
}

func newNode(t testing.TB, r *servers.RedisServer) other {
	return startNode(t, "ioredis", "testdata/lock.js", strconv.Itoa(r.Port()))
}

// startNode starts a program that is written for Node and needs a package.
func startNode(t testing.TB, pkg string, args ...string) other {
	t.Helper()
	if err := exec.Command("node", "-e", "require.resolve('"+pkg+"', { paths: ['testdata'] })").Run(); err != nil {
		t.Fatalf("node or %s is not installed (%v): run scripts/servers.sh, or npm ci in bench/interop/testdata", pkg, err)
	}
	return start(t, "node", args...)
}

func start(t testing.TB, name string, args ...string) other {
	t.Helper()
	cmd := exec.Command(name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said.String())
		}
	})
	return &program{t, func(line string) { fmt.Fprintln(in, line) }, bufio.NewScanner(out)}
}

func (p *program) ask(format string, args ...any) bool {
	p.in(fmt.Sprintf(format, args...))
	if !p.out.Scan() {
		p.t.Errorf("the program ended: %v", p.out.Err())
	}
	return p.out.Text() == "ok"
}

func (p *program) acquire(name string, ttl time.Duration) bool {
	return p.ask("acquire %s %d", name, ttl.Milliseconds())
}

func (p *program) extend(name string, ttl time.Duration) bool {
	return p.ask("extend %s %d", name, ttl.Milliseconds())
}

func (p *program) release(name string) bool { return p.ask("release %s", name) }

func client(t testing.TB, r *servers.RedisServer) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: r.Addr()})
	t.Cleanup(func() { c.Close() })
	return c
}

type redsyncer struct {
	t    testing.TB
	rs   *redsync.Redsync
	have map[string]*redsync.Mutex
}

func newRedsync(t testing.TB, r *servers.RedisServer) other {
	return redsyncer{t, redsync.New(goredis.NewPool(client(t, r))), make(map[string]*redsync.Mutex)}
}

func (s redsyncer) acquire(name string, ttl time.Duration) bool {
	m := s.rs.NewMutex(name, redsync.WithExpiry(ttl))
	err := m.TryLockContext(s.t.Context())
	if err == nil {
		s.have[name] = m
		return true
	}
	var taken *redsync.ErrTaken
	var there *redsync.ErrNodeTaken // on too many to be the others', with those that are down
	if !errors.As(err, &taken) && !errors.As(err, &there) && !errors.Is(err, redsync.ErrFailed) {
		s.t.Errorf("redsync: %v", err)
	}
	return false
}

// A Mutex extends by the expiry that it was made with: so make another one.
func (s redsyncer) extend(name string, ttl time.Duration) bool {
	ok, _ := s.rs.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithValue(s.have[name].Value())).ExtendContext(s.t.Context())
	return ok
}

func (s redsyncer) release(name string) bool {
	ok, _ := s.have[name].UnlockContext(s.t.Context())
	return ok
}

type obtainer struct {
	t    testing.TB
	c    *bsm.Client
	have map[string]*bsm.Lock
}

func newBSM(t testing.TB, r *servers.RedisServer) other {
	return obtainer{t, bsm.New(client(t, r)), make(map[string]*bsm.Lock)}
}

func (o obtainer) acquire(name string, ttl time.Duration) bool {
	l, err := o.c.Obtain(o.t.Context(), name, ttl, nil)
	if err == nil {
		o.have[name] = l
		return true
	}
	if !errors.Is(err, bsm.ErrNotObtained) {
		o.t.Errorf("bsm/redislock: %v", err)
	}
	return false
}

func (o obtainer) extend(name string, ttl time.Duration) bool {
	return o.have[name].Refresh(o.t.Context(), ttl, nil) == nil
}

func (o obtainer) release(name string) bool { return o.have[name].Release(context.Background()) == nil }
