package pglock

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// sweepEvery is how often a client tidies up, give or take a half.
	sweepEvery = time.Minute
	// forgetAfter is how long a name that nobody uses is remembered.
	forgetAfter = time.Hour
	// sweepRows is how many rows one statement removes.
	sweepRows = 1000
)

// sweep forgets idle names, records past their retention and old events, now and
// then, until Close. All clients do it, and pass over what another has in hand.
func (t *Table) sweep() {
	for {
		pause(t.life, sweepEvery/2+rand.N(sweepEvery))
		if t.life.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.life, callWait)
		// What fails is tried again next time; a role without the right to delete
		// leaves it to others.
		_ = t.tidy(ctx, forgetAfter)
		cancel()
	}
}

func (t *Table) tidy(ctx context.Context, idle time.Duration) error {
	return t.call(ctx, func(ctx context.Context, s *session) error {
		if err := s.run(ctx, t.sql.named("sweepNames"), []any{micros(idle), sweepRows}, nil); err != nil {
			return err
		}
		if err := s.run(ctx, t.sql.named("sweepRecords"), []any{sweepRows}, nil); err != nil {
			return err
		}
		if !t.opts.Journal {
			return nil
		}
		return s.run(ctx, t.sql.named("sweepEvents"), []any{int64(maxEvents)}, nil)
	})
}
