package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RedisServer is a Redis server, empty at its start.
type RedisServer struct{ *Server }

// RedisOption changes how a Redis server runs.
type RedisOption func(*redisConfig)

type redisConfig struct {
	durable bool
	args    []string
	env     []string
}

// Durable has Redis write every change to disk before it answers (appendonly
// with fsync always): what it has acknowledged survives Kill and Restart.
// Without it a restart forgets everything.
func Durable() RedisOption {
	return func(c *redisConfig) { c.durable = true }
}

// RedisArgs adds arguments to the command line, after the usual ones:
// RedisArgs("--maxmemory", "4mb").
func RedisArgs(args ...string) RedisOption {
	return func(c *redisConfig) { c.args = append(c.args, args...) }
}

// RedisEnv adds variables, each name=value, to the environment of the process.
func RedisEnv(vars ...string) RedisOption {
	return func(c *redisConfig) { c.env = append(c.env, vars...) }
}

// Redis starts a Redis server that ends with the test.
func Redis(t testing.TB, opts ...RedisOption) *RedisServer {
	t.Helper()
	return own(t, func(dir string) (*RedisServer, error) { return launchRedis(dir, takePort, opts) })
}

// StartRedis starts a Redis server with its data in dir, for a program that is
// no test. The caller ends it with Stop; on Linux it ends with the program too.
func StartRedis(dir string, opts ...RedisOption) (*RedisServer, error) {
	return launchRedis(dir, takePort, opts)
}

// Redises starts n Redis servers side by side, each on its own, that end with
// the test.
func Redises(t testing.TB, n int, opts ...RedisOption) []*RedisServer {
	t.Helper()
	dir := t.TempDir()
	all, err := together(n, func(i int) (*RedisServer, error) {
		sub := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			return nil, err
		}
		return launchRedis(sub, takePort, opts)
	})
	for _, r := range all {
		if r != nil {
			keep(t, r)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var sharedRedis shared[*RedisServer]

// SharedRedis returns the one Redis server that the tests of this binary share.
// It needs [Main]. A test uses names of its own there, and doesn't stop, pause,
// or flush it.
func SharedRedis(t testing.TB) *RedisServer {
	t.Helper()
	return sharedRedis.get(t, "Redis", func(dir string) (*RedisServer, error) { return launchRedis(dir, takePort, nil) })
}

// Dial opens a connection to the server.
func (r *RedisServer) Dial() (*RESP, error) { return DialRESP(r.Addr()) }

// Do sends one command on a connection of its own and returns the reply, as
// [RESP.Do] does. It gives up after a while if the server is silent.
func (r *RedisServer) Do(args ...any) (any, error) { return doOnce(r.Addr(), args...) }

func launchRedis(dir string, next func() (int, error), opts []RedisOption) (*RedisServer, error) {
	path, err := redisServer.find()
	if err != nil {
		return nil, err
	}
	var conf redisConfig
	for _, o := range opts {
		o(&conf)
	}
	s, err := launch(recipe{
		name:    "redis",
		command: func(dir string, port int) command { return conf.command(path, dir, port) },
		probe:   probeRedis,
	}, dir, next)
	if err != nil {
		return nil, err
	}
	return &RedisServer{s}, nil
}

func (c redisConfig) command(path, dir string, port int) command {
	args := []string{
		"--port", strconv.Itoa(port),
		"--bind", "127.0.0.1",
		"--dir", dir,
		"--save", "",
		"--daemonize", "no",
	}
	if c.durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	} else {
		args = append(args, "--appendonly", "no")
	}
	return command{
		path:  path,
		args:  append(args, c.args...),
		env:   c.env,
		dir:   dir,
		ready: "Ready to accept connections",
	}
}

func probeRedis(addr string, pid int) error {
	info, err := doOnce(addr, "INFO", "server")
	if err != nil {
		return err
	}
	text, _ := info.(string)
	if !strings.Contains(text, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("another server answers at %s", addr)
	}
	return nil
}
