package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dibslock/dibs/internal/servers"
)

var (
	dibsOnSingle  = dibsOn("Redis", "redis://%s", "subscribe").on("one server", firstOf)
	dibsOnCluster = dibsOn("Redis", "redis-cluster://%s", "ssubscribe").on("a cluster", restOf)
)

func restOf(where string) string { _, rest, _ := strings.Cut(where, ","); return rest }

var redisCluster = store{
	name:  "Redis Cluster",
	about: "Three masters with a replica each, without persistence, and a server by itself with a replica, where the floor is: the same library with redis://.",
	start: startCluster,
	contests: []contest{
		{"lock and unlock, uncontended", "time ≤ 1.1x", race{1, 1, false}, []player{dibsOnSingle, dibsOnCluster}},
		{"64 goroutines, each on its own name", "", race{1, 64, false}, []player{dibsOnSingle, dibsOnCluster}},
	},
}

func startCluster(dir string) (server, error) {
	alone, replica, sub := filepath.Join(dir, "alone"), filepath.Join(dir, "replica"), filepath.Join(dir, "cluster")
	if err := errors.Join(os.Mkdir(alone, 0o755), os.Mkdir(replica, 0o755), os.Mkdir(sub, 0o755)); err != nil {
		return nil, err
	}
	one, err := servers.StartRedis(alone)
	if err != nil {
		return nil, err
	}
	follower, err := servers.StartRedis(replica, servers.RedisArgs("--replicaof", "127.0.0.1", strconv.Itoa(one.Port())))
	if err != nil {
		return nil, errors.Join(err, one.Stop())
	}
	const masters = 3
	c, err := servers.StartCluster(sub, masters)
	if err != nil {
		return nil, errors.Join(err, follower.Stop(), one.Stop())
	}
	s := redisServers{all: []redisServer{{one}}, at: one.Addr(), ends: func() error { return errors.Join(follower.Stop(), one.Stop(), c.Stop()) }}
	for _, r := range c.Nodes[:masters] { // a replica takes no orders
		s.all, s.at = append(s.all, redisServer{r}), s.at+","+r.Addr()
	}
	return s, nil
}
