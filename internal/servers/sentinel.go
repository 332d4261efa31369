package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// SentinelSet is a Redis master with replicas, watched by three sentinels, which
// take a master for dead that is silent for half a second.
type SentinelSet struct {
	Name      string         // of the master, to the sentinels
	Servers   []*RedisServer // the first is the master at the start
	Sentinels []*Server
}

// Sentinels starts a master with replicas and three sentinels, that end with the
// test. It returns when the sentinels know all of them and each other.
func Sentinels(t testing.TB, replicas int, opts ...RedisOption) *SentinelSet {
	t.Helper()
	s := &SentinelSet{Name: "main"}
	s.Servers = append(s.Servers, Redis(t, append(opts, RedisArgs("--repl-diskless-sync-delay", "0"))...))
	master := strconv.Itoa(s.Servers[0].Port())
	follow := RedisArgs("--replicaof", "127.0.0.1", master, "--repl-diskless-sync-delay", "0")
	s.Servers = append(s.Servers, Redises(t, replicas, append(opts, follow)...)...)
	path, err := redisServer.find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	all, err := together(3, func(i int) (*Server, error) {
		sub := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			return nil, err
		}
		return launch(recipe{
			name:    "sentinel",
			command: func(dir string, port int) command { return sentinelCommand(path, dir, port, s.Name, master) },
			probe:   probeRedis,
		}, sub, takePort)
	})
	for _, one := range all {
		if one != nil {
			keep(t, one)
			s.Sentinels = append(s.Sentinels, one)
		}
	}
	if err == nil {
		err = s.meet(replicas)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sentinelCommand writes the file that a sentinel rewrites itself later.
func sentinelCommand(path, dir string, port int, name, master string) command {
	file := filepath.Join(dir, "sentinel.conf")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %s 2\n"+
			"sentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 3000\n", port, dir, name, master, name, name)
		_ = os.WriteFile(file, []byte(text), 0o644) // the server says what is wrong with it
	}
	return command{path: path, args: []string{file, "--sentinel"}, dir: dir, ready: "Sentinel ID is"}
}

// meet waits until the sentinels have found each other and the replicas, and
// hurries them.
func (s *SentinelSet) meet(replicas int) error {
	hurry := func(args ...any) error {
		for _, one := range s.Sentinels {
			if _, err := doOnce(one.Addr(), append([]any{"SENTINEL", "DEBUG"}, args...)...); err != nil {
				return err
			}
		}
		return nil
	}
	if err := hurry("info-period", 200, "ping-period", 100, "ask-period", 100, "publish-period", 100); err != nil {
		return err
	}
	for deadline := time.Now().Add(startPatience); ; time.Sleep(20 * time.Millisecond) {
		met := 0
		for _, one := range s.Sentinels {
			v, err := doOnce(one.Addr(), "SENTINEL", "MASTER", s.Name)
			if err != nil {
				return err
			}
			if f := pairs(v); f["num-other-sentinels"] == "2" && f["num-slaves"] == strconv.Itoa(replicas) {
				met++
			}
		}
		if met == len(s.Sentinels) {
			// Faster than that, and they would undo a failover that was forced.
			return hurry("publish-period", 1000)
		}
		if time.Now().After(deadline) {
			return errors.New("servers: the sentinels did not find each other")
		}
	}
}

// pairs reads a list of names and values.
func pairs(v any) map[string]string {
	m := make(map[string]string)
	list, _ := v.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		m[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return m
}

// Addrs returns the sentinels' addresses.
func (s *SentinelSet) Addrs() (addrs []string) {
	for _, one := range s.Sentinels {
		addrs = append(addrs, one.Addr())
	}
	return addrs
}

// Master returns the server that most sentinels say is the master.
func (s *SentinelSet) Master() (*RedisServer, error) {
	votes := make(map[string]int)
	for _, one := range s.Sentinels {
		v, err := doOnce(one.Addr(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
		if pair, ok := v.([]any); err == nil && ok && len(pair) == 2 {
			votes[fmt.Sprint(pair[1])]++
		}
	}
	for _, r := range s.Servers {
		if 2*votes[strconv.Itoa(r.Port())] > len(s.Sentinels) {
			return r, nil
		}
	}
	return nil, errors.New("servers: the sentinels do not agree on a master")
}
