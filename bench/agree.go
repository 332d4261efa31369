package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock"
)

// An agree has goroutines lock names of a quorum, each name once, and tells how many
// grants took one round trip.
type agree struct{ names, goroutines int }

func (a agree) rounds(o options) int { return min(5, o.rounds) }

func (a agree) turn(ctx context.Context, srv server, p player, _ options) (sample, error) {
	if err := p.seed(ctx, srv.where(), nil); err != nil {
		return nil, err
	}
	s, err := driver.Open(ctx, strings.Replace(quorumURL, "%s", srv.where(), 1))
	if err != nil {
		return nil, err
	}
	q := s.(*redislock.Redlock)
	c, err := dibs.New(q, nil)
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	if p.name == reusedNames.name {
		err = a.lock(ctx, c)
	}
	asked, second := q.Rounds()
	began := time.Now()
	err = errors.Join(err, a.lock(ctx, c))
	took := time.Since(began)
	askedNow, secondNow := q.Rounds()
	if err := errors.Join(err, c.Close(ctx)); err != nil {
		return nil, err
	}
	return sample{
		"one round trip, %": 100 - 100*float64(secondNow-second)/float64(askedNow-asked),
		"grants/s":          float64(a.names) / took.Seconds(),
	}, nil
}

// lock locks and unlocks each name once.
func (a agree) lock(ctx context.Context, c *dibs.Client) error {
	errs := make([]error, a.goroutines)
	var all sync.WaitGroup
	for g := range a.goroutines {
		all.Go(func() { // ends with its share
			for i := g; i < a.names && errs[g] == nil; i += a.goroutines {
				l, err := c.Mutex(fmt.Sprint("name-", i)).Lock(ctx)
				if err == nil {
					err = l.Release(ctx)
				}
				errs[g] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (a agree) figures() []figure {
	return []figure{{name: "one round trip, %", digits: 2}, {name: "grants/s"}}
}
