package main

import (
	"context"
	"fmt"
	"time"
)

// A crash kills the process that holds a lock, and sees when another that waits
// for it has it. It can't be before the TTL is over.
type crash struct{ ttl time.Duration }

func (c crash) rounds(o options) int { return min(7, o.rounds) }

func (c crash) turn(_ context.Context, srv server, p player, opts options) (sample, error) {
	hands, err := opts.crew.take(2)
	if err != nil {
		return nil, err
	}
	holder, waiter := hands[0], hands[1]
	defer waiter.kill()
	defer holder.kill()
	if _, err := each(hands, same(order{Do: "open", Player: p.name, Where: srv.where(), TTL: c.ttl})); err != nil {
		return nil, err
	}
	lock := order{Do: "lock", Names: []string{"the one"}}
	if err := holder.tell(lock); err != nil {
		return nil, err
	}
	first, err := holder.hear()
	if err != nil {
		return nil, err
	}
	if err := waiter.tell(lock); err != nil {
		return nil, err
	}
	time.Sleep(c.ttl / 10) // the waiter waits by now, and the holder has not renewed yet
	holder.kill()
	second, err := waiter.hear()
	if err != nil {
		return nil, err
	}
	took := second.At.Sub(first.At)
	if took < c.ttl/2 {
		return nil, fmt.Errorf("granted again after %v, with a TTL of %v", took, c.ttl)
	}
	return sample{
		"grant to grant": took.Seconds(),
		"of the TTL":     float64(took) / float64(c.ttl),
		"ms late":        float64((took - c.ttl).Microseconds()) / 1000,
	}, nil
}

func (c crash) figures() []figure {
	return []figure{{name: "grant to grant", over: true, digits: 2}, {name: "of the TTL", digits: 2}, {name: "ms late", digits: 1}}
}
