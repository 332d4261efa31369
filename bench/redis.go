package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dibslock/dibs/internal/servers"
	_ "github.com/dibslock/dibs/redislock" // redis://
)

var dibsOnRedis = dibsOn("Redis", "redis://%s", "subscribe")

var redis = store{
	name: "Redis",
	about: "One server, without persistence. The floor of what nobody else wants is `SET NX PX` and a compare-and-delete script, and of a hand-over `BLPOP` and `LPUSH`; " +
		"that of holding is one pipeline of compare-and-`PEXPIRE` scripts every third of the TTL, that of a crash a sleep for the key's `PTTL`; all by rueidis, as dibs'. " +
		"None of the floors draws tokens, keeps a line or notices a loss.",
	start: startRedis,
	contests: []contest{
		{"lock and unlock, uncontended", "time ≤ 1.25x, ≤ 10 allocations", race{1, 1, false}, []player{redisFloor, dibsOnRedis, redsyncPlayer, bsmPlayer}},
		{"64 goroutines, each on its own name", "grants ≥ 0.85x, client CPU ≤ 1.2x", race{1, 64, false}, []player{redisFloor, dibsOnRedis, redsyncPlayer, bsmPlayer}},
		{"512 goroutines, each on its own name", "", race{1, 512, false}, []player{redisFloor, dibsOnRedis, redsyncPlayer, bsmPlayer}},
		{"hand-over, 2 waiting processes", handOver, race{2, 1, true}, []player{redisQueue, dibsOnRedis, redsyncPlayer, bsmPlayer}},
		{"hand-over, 16 waiting processes", handOver, race{16, 1, true}, []player{redisQueue, dibsOnRedis, redsyncPlayer, bsmPlayer}},
		{"hand-over, 128 waiting processes", handOver, race{128, 1, true}, []player{redisQueue, dibsOnRedis, redsyncPlayer, bsmPlayer}},
		{"10,000 locks held", "≤ 30 renewal calls a TTL, ≤ 600 bytes of heap, no goroutine a lock", hold{10_000, 3 * time.Second, 3}, []player{redisRenewer, dibsOnRedis}},
		{"crash to grant", "", crash{time.Second}, []player{redisFloor, dibsOnRedis, redsyncPlayer, bsmPlayer}},
	},
}

const handOver = "time ≤ 2.2x, ≤ 2.4 commands a grant, fairness ≥ 0.98"

type redisServer struct{ *servers.RedisServer }

func startRedis(dir string) (server, error) {
	r, err := servers.StartRedis(dir)
	return redisServer{r}, err
}

func (r redisServer) where() string { return r.Addr() }
func (r redisServer) stop() error   { return r.Stop() }

func (r redisServer) wipe() error {
	_, err := r.Do("FLUSHALL")
	return err
}

func (r redisServer) claims() (int, error) {
	n, err := r.Do("DBSIZE")
	if err != nil {
		return 0, err
	}
	return int(n.(int64)), nil
}

// load reads what INFO tells, in which its own is left out.
func (r redisServer) load() (l load, err error) {
	text, err := r.Do("INFO", "all")
	if err != nil {
		return l, err
	}
	l.commands = make(map[string]int)
	for line := range strings.Lines(text.(string)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case key == "used_cpu_sys" || key == "used_cpu_user":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return l, fmt.Errorf("INFO: %s", line)
			}
			l.cpu += time.Duration(seconds * float64(time.Second))
		case strings.HasPrefix(key, "cmdstat_") && key != "cmdstat_info":
			var n int
			if _, err := fmt.Sscanf(value, "calls=%d,", &n); err != nil {
				return l, fmt.Errorf("INFO: %s", line)
			}
			l.commands[strings.TrimPrefix(key, "cmdstat_")] = n
		}
	}
	return l, nil
}
