package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// options are the program's.
type options struct {
	rounds int
	each   time.Duration
	crew   *crew
}

// A contest has its players do the same, turn by turn.
type contest struct {
	name    string
	asked   string // what is asked of dibs, for the report
	kind    kind
	players []player // the floor first
}

// A kind of contest is how one player's turn goes, and what is told of it.
type kind interface {
	// turn lets p play once, on an empty server.
	turn(ctx context.Context, srv server, p player, opts options) (sample, error)
	// rounds is how many turns each player has.
	rounds(opts options) int
	figures() []figure
}

// An outcome is a contest's samples: one for each player in each round.
type outcome struct {
	store store
	contest
	samples [][]sample // by player, then by round
}

// measure plays the rounds. Who begins changes from one to the next.
func (c contest) measure(ctx context.Context, srv server, opts options) (outcome, error) {
	o := outcome{contest: c, samples: make([][]sample, len(c.players))}
	order := make([]int, len(c.players))
	for i := range order {
		order[i] = i
	}
	for range c.kind.rounds(opts) {
		for _, i := range order {
			if err := srv.wipe(); err != nil {
				return o, err
			}
			s, err := c.kind.turn(ctx, srv, c.players[i], opts)
			if err != nil {
				return o, fmt.Errorf("%s: %w", c.players[i].name, err)
			}
			o.samples[i] = append(o.samples[i], s)
		}
		order = slices.Concat(order[1:], order[:1])
	}
	return o, nil
}
