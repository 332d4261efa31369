// Command bench measures locks beside a raw floor: the fewest bare operations of
// the store's own client that could do the same. Floor, dibs and peers take turns
// in the same run, each in processes of its own, so that the machine's moods hit
// all of them. What counts is the ratio to the floor; absolute figures are this
// machine's.
//
// The files: store.go is a store and what is measured on it (redis.go,
// redis_quorum.go, redis_cluster.go, postgres.go, sqlite.go), player.go a way to lock
// there (dibs.go, and a file for each floor and peer), contest.go the rounds, race.go,
// relay.go, hold.go, crash.go and agree.go the kinds of contest, worker.go and crew.go
// the processes that take part, sample.go the figures, report.go RESULTS.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// stores are what is measured, in the order of the report.
var stores []store

// The stores name their players, and a worker looks up its player in the stores.
func init() { stores = []store{sqlite, redis, redisQuorum, redisCluster, postgres, postgresFast} }

func main() {
	if len(os.Args) == 2 && os.Args[1] == workerArg {
		work(os.Stdin, os.Stdout)
		return
	}
	var (
		opts  options
		only  = flag.String("only", "", "measure only what has this in its name: a store's, or a contest's as it is printed")
		write = flag.String("write", "", "write the report to this file too; with -only, in the place of what was measured anew")
	)
	flag.IntVar(&opts.rounds, "rounds", 15, "how many rounds each contest takes")
	flag.DurationVar(&opts.each, "for", 300*time.Millisecond, "how long each player runs in a round of a race")
	flag.Parse()
	opts.crew = new(crew)
	defer opts.crew.end()
	if err := run(context.Background(), opts, *only, *write); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) // the workers end with their input
	}
}

func run(ctx context.Context, opts options, only, write string) error {
	var all []outcome
	for _, s := range stores {
		s.contests = s.named(only)
		if len(s.contests) == 0 {
			continue
		}
		some, err := s.measure(ctx, opts)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return fmt.Errorf("nothing is called %q", only)
	}
	text := report(all, opts)
	fmt.Print(text)
	if write == "" {
		return nil
	}
	if only != "" {
		if older, err := os.ReadFile(write); err == nil {
			text = splice(string(older), text)
		}
	}
	return os.WriteFile(write, []byte(text), 0o644)
}

// named are the contests whose name, after the store's, has part in it.
func (s store) named(part string) (some []contest) {
	for _, c := range s.contests {
		if strings.Contains(strings.ToLower(s.name+": "+c.name), strings.ToLower(part)) {
			some = append(some, c)
		}
	}
	return some
}
