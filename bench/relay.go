package main

import (
	"context"
	"fmt"
	"time"
)

// A relay hands one lock to and fro between two processes, each of which holds it
// long enough for the other to wait, and stays away long enough for it to be
// served. What counts is the time from the release to the other's grant: a race
// tells how much a lock does, and not how soon one that rests is heard of.
type relay struct{}

const (
	relayHolds = 4 * time.Millisecond // until the other waits
	relayRests = 2 * time.Millisecond // until the other was served
)

func (relay) rounds(o options) int { return o.rounds }

func (relay) turn(ctx context.Context, srv server, p player, opts options) (sample, error) {
	if p.seed != nil {
		if err := p.seed(ctx, srv.where(), nil); err != nil {
			return nil, err
		}
	}
	hands, err := opts.crew.take(2)
	if err != nil {
		return nil, err
	}
	if _, err := each(hands, same(order{Do: "open", Player: p.name, Where: srv.where(), TTL: raceTTL})); err != nil {
		return nil, err
	}
	from := time.Now().Add(raceWarm)
	answers, err := each(hands, same(order{Do: "relay", Names: []string{"the one"}, From: from, To: from.Add(2 * opts.each)}))
	if err != nil {
		return nil, err
	}
	if _, err := each(hands, same(order{Do: "close"})); err != nil {
		return nil, err
	}
	opts.crew.give(hands)
	took := handOverTimes(answers)
	if len(took) == 0 {
		return nil, fmt.Errorf("nothing was handed over in %v", 2*opts.each)
	}
	_, median, _ := spread(took)
	return sample{"hand-over": median, "µs": median}, nil
}

// handOverTimes are those from each release to the other's next grant, in
// microseconds. All processes have the machine's clock.
func handOverTimes(answers []answer) (took []float64) {
	for i, a := range answers {
		for _, release := range a.Releases {
			for _, grant := range answers[1-i].Grants[0] {
				if grant.After(release) {
					took = append(took, float64(grant.Sub(release).Nanoseconds())/1000)
					break
				}
			}
		}
	}
	return took
}

func (relay) figures() []figure {
	return []figure{{name: "hand-over", over: true, digits: 2}, {name: "µs"}}
}

// relay locks, holds, releases and rests until o.To.
func (w *worker) relay(ctx context.Context, o order) (a answer, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer time.AfterFunc(time.Until(o.To.Add(drain)), func() { cancel(errLeft) }).Stop()
	a.Grants = make([][]time.Time, 1)
	for time.Now().Before(o.To) {
		l, err := w.client.lock(ctx, o.Names[0])
		if err != nil {
			return a, err
		}
		a.Grants[0] = append(a.Grants[0], time.Now())
		time.Sleep(relayHolds)
		if now := time.Now(); now.After(o.From) && now.Before(o.To) {
			a.Releases = append(a.Releases, now)
		}
		if err := l.Release(ctx); err != nil {
			return a, err
		}
		time.Sleep(relayRests)
	}
	return a, nil
}
