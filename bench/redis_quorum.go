package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

const quorumURL = "redlock://%s/?prefix=quorum"

var (
	dibsOnOne   = dibsOn("Redis", "redis://%s", "subscribe").on("one node", firstOf)
	dibsOnFive  = quorumPlayer("dibs on five nodes")
	syncOnOne   = redsyncPlayer.on("one node", firstOf)
	syncOnFive  = redsyncPlayer.on("five nodes", allOf)
	freshNames  = quorumPlayer("dibs on five nodes, names that nobody had before")
	reusedNames = quorumPlayer("dibs on five nodes, names that were locked before")
)

func firstOf(where string) string { first, _, _ := strings.Cut(where, ","); return first }
func allOf(where string) string   { return where }

// quorumPlayer is dibs on all nodes, which are made a quorum each time that they are
// empty.
func quorumPlayer(name string) player {
	p := dibsOn("Redis", quorumURL)
	p.name = name
	p.seed = func(ctx context.Context, where string, _ []string) error {
		return redislock.RedlockInit(ctx, strings.Replace(quorumURL, "%s", where, 1))
	}
	return p
}

var redisQuorum = store{
	name: "Redis quorum",
	about: "Five servers, without persistence, on the machine that the client is on too: what five servers do at once on five machines, they do one after the other here when there are fewer processors than servers. " +
		"The floor is the same library on one of the five.",
	start: startQuorum,
	contests: []contest{
		{"lock and unlock, uncontended", "time ≤ 2x", race{1, 1, false}, []player{dibsOnOne, pingsOnFive, dibsOnFive}},
		{"redsync's lock and unlock, uncontended", "", race{1, 1, false}, []player{syncOnOne, syncOnFive}},
		{"64 goroutines, each on its own name", "", race{1, 64, false}, []player{dibsOnOne, dibsOnFive, syncOnFive}},
		{"round trips for a grant", "", agree{10_000, 10}, []player{freshNames, reusedNames}},
	},
}

// redisServers are several, which are measured together.
type redisServers struct {
	all  []redisServer
	at   string
	ends func() error
}

func startQuorum(dir string) (server, error) {
	var q redisServers
	var addrs []string
	q.ends = func() error {
		var errs []error
		for _, r := range q.all {
			errs = append(errs, r.Stop())
		}
		return errors.Join(errs...)
	}
	for i := range 5 {
		sub := filepath.Join(dir, strconv.Itoa(i))
		err := os.Mkdir(sub, 0o755)
		var r *servers.RedisServer
		if err == nil {
			r, err = servers.StartRedis(sub)
		}
		if err != nil {
			return nil, errors.Join(err, q.ends())
		}
		q.all, addrs = append(q.all, redisServer{r}), append(addrs, r.Addr())
	}
	q.at = strings.Join(addrs, ",")
	return q, nil
}

func (q redisServers) where() string { return q.at }
func (q redisServers) stop() error   { return q.ends() }

func (q redisServers) wipe() error {
	for _, r := range q.all {
		if err := r.wipe(); err != nil {
			return err
		}
	}
	return nil
}

func (q redisServers) claims() (n int, err error) {
	for _, r := range q.all {
		one, err := r.claims()
		if err != nil {
			return 0, err
		}
		n += one
	}
	return n, nil
}

func (q redisServers) load() (sum load, err error) {
	sum.commands = make(map[string]int)
	for _, r := range q.all {
		l, err := r.load()
		if err != nil {
			return sum, err
		}
		sum.cpu += l.cpu
		for kind, n := range l.commands {
			sum.commands[kind] += n
		}
	}
	return sum, nil
}
