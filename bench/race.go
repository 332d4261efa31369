package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A race locks and unlocks as fast as can be: goroutines in processes, each on a
// name of its own, or all on one.
type race struct {
	processes, goroutines int
	shared                bool
}

const (
	raceTTL  = 30 * time.Second
	raceWarm = 100 * time.Millisecond
)

func (r race) rounds(o options) int { return o.rounds }

// one tells whether there is nothing but one goroutine.
func (r race) one() bool { return r.processes*r.goroutines == 1 }

func (r race) turn(ctx context.Context, srv server, p player, opts options) (sample, error) {
	names := make([][]string, r.processes)
	for i := range names {
		for g := range r.goroutines {
			name := "the one"
			if !r.shared {
				name = fmt.Sprintf("job-%d-%d", i, g)
			}
			names[i] = append(names[i], name)
		}
	}
	if p.seed != nil {
		if err := p.seed(ctx, srv.where(), names[0]); err != nil {
			return nil, err
		}
	}
	hands, err := opts.crew.take(r.processes)
	if err != nil {
		return nil, err
	}
	if _, err := each(hands, same(order{Do: "open", Player: p.name, Where: srv.where(), TTL: raceTTL})); err != nil {
		return nil, err
	}
	long := opts.each
	if r.shared {
		long *= 4 // so that each of many has its turn some times
	}
	from := time.Now().Add(raceWarm + time.Duration(r.processes)*time.Millisecond)
	to := from.Add(long)
	loads := make(chan loaded, 1)
	go func() { loads <- loadBetween(srv, from, to) }() // ends at to
	answers, err := each(hands, func(i int) order { return order{Do: "race", Names: names[i], From: from, To: to} })
	load := <-loads
	if err == nil {
		err = load.err
	}
	if err != nil {
		return nil, err
	}
	if _, err := each(hands, same(order{Do: "close"})); err != nil {
		return nil, err
	}
	opts.crew.give(hands)
	return r.sample(p, answers, load, long)
}

// loaded is what a server did in some time.
type loaded struct {
	commands map[string]int
	cpu      time.Duration
	err      error
}

func loadBetween(srv server, from, to time.Time) loaded {
	time.Sleep(time.Until(from))
	a, err := srv.load()
	if err != nil {
		return loaded{err: err}
	}
	time.Sleep(time.Until(to))
	b, err := srv.load()
	for kind, n := range a.commands {
		b.commands[kind] -= n
	}
	return loaded{b.commands, b.cpu - a.cpu, err}
}

func (r race) sample(p player, answers []answer, load loaded, long time.Duration) (sample, error) {
	var shares []int
	var grants []grant
	var cpu, allocs float64
	for _, a := range answers {
		for _, times := range a.Grants {
			for _, t := range times {
				grants = append(grants, grant{t, len(shares)})
			}
			shares = append(shares, len(times))
		}
		cpu += float64(a.CPU.Microseconds())
		allocs += float64(a.Allocs)
	}
	ops := float64(len(grants))
	if ops == 0 {
		return nil, fmt.Errorf("nothing was granted in %v", long)
	}
	s := sample{
		"grants/s":    ops / long.Seconds(),
		"time":        1 / ops,
		"client CPU":  cpu / ops,
		"allocations": allocs / ops,
		"fairness":    fairness(shares),
	}
	if r.shared {
		s["hand-over"] = 1 / float64(max(1, handOvers(grants))) // one, in favour of a player that had none
	}
	if load.commands != nil {
		s["server CPU"] = float64(load.cpu.Microseconds()) / ops
		sent, all := 0, 0
		for kind, n := range load.commands {
			all += n
			if p.sent(kind) {
				sent += n
			}
		}
		s["commands"] = float64(sent) / ops
		s["with those in scripts"] = float64(all) / ops
	}
	return s, nil
}

// A grant is when which goroutine was granted the name.
type grant struct {
	at  time.Time
	who int
}

// handOvers counts the grants to another than the one before. Who takes again
// what it has just given back has been handed nothing, however fast it is.
func handOvers(grants []grant) (n int) {
	slices.SortFunc(grants, func(a, b grant) int { return a.at.Compare(b.at) })
	for i := range grants {
		if i > 0 && grants[i].who != grants[i-1].who {
			n++
		}
	}
	return n
}

func (r race) figures() []figure {
	fs := []figure{{name: "time", over: true, digits: 2}}
	switch {
	case r.shared:
		fs = append(fs, figure{name: "hand-over", over: true, digits: 2})
	case !r.one():
		fs = []figure{{name: "grants/s", over: true, digits: 2}}
	}
	fs = append(
		fs, figure{name: "client CPU", over: true, digits: 2}, figure{name: "server CPU", over: true, digits: 2},
		figure{name: "commands", digits: 2}, figure{name: "with those in scripts", digits: 2}, figure{name: "allocations", digits: 1},
	)
	if r.shared {
		fs = append(fs, figure{name: "fairness", digits: 2})
	}
	return append(fs, figure{name: "grants/s"})
}
