package main

import (
	"context"
	"fmt"
	"time"
)

// A hold has one process hold many locks for a while, which their player renews.
type hold struct {
	names int
	ttl   time.Duration
	ttls  int // for how many of ttl they are held
}

func (h hold) rounds(o options) int { return min(3, o.rounds) }

func (h hold) turn(_ context.Context, srv server, p player, opts options) (sample, error) {
	hands, err := opts.crew.take(1)
	if err != nil {
		return nil, err
	}
	w := hands[0]
	defer w.kill() // what it holds ends with it
	ask := func(o order) (answer, error) {
		as, err := each(hands, same(o))
		return as[0], err
	}
	if _, err := ask(order{Do: "open", Player: p.name, Where: srv.where(), TTL: h.ttl}); err != nil {
		return nil, err
	}
	var names []string
	for i := range h.names {
		names = append(names, fmt.Sprintf("job-%d", i))
	}
	began := time.Now()
	held, err := ask(order{Do: "hold", Names: names})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	before, err := ask(order{Do: "spent"})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	load := loadBetween(srv, now, now.Add(time.Duration(h.ttls)*h.ttl))
	if load.err != nil {
		return nil, load.err
	}
	after, err := ask(order{Do: "spent"})
	if err != nil {
		return nil, err
	}
	left, err := srv.claims()
	if err != nil {
		return nil, err
	}
	if left < h.names {
		return nil, fmt.Errorf("of %d locks %d were left after %d TTLs", h.names, left, h.ttls)
	}
	sent := 0
	for kind, n := range load.commands {
		if p.sent(kind) {
			sent += n
		}
	}
	ttls := float64(h.ttls)
	return sample{
		"time to take them":    took.Seconds(),
		"client CPU":           float64(after.CPU-before.CPU) / ttls / float64(h.ttl),
		"server CPU":           float64(load.cpu) / ttls / float64(h.ttl),
		"commands in a TTL":    float64(sent) / ttls,
		"bytes of heap a lock": float64(held.Heap) / float64(h.names),
		"goroutines":           float64(held.Goroutines),
	}, nil
}

func (h hold) figures() []figure {
	return []figure{
		{name: "client CPU", over: true, digits: 2},
		{name: "server CPU", over: true, digits: 2},
		{name: "time to take them", over: true, digits: 2},
		{name: "commands in a TTL", digits: 0},
		{name: "bytes of heap a lock"},
		{name: "goroutines"},
		{name: "client CPU", digits: 3},
		{name: "server CPU", digits: 3},
	}
}
