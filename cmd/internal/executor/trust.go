package executor

import (
	"context"
	"errors"
	"time"

	"github.com/dibslock/dibs"
)

// Trust returns when the lease has enough trust left for work to be stopped in, and
// for a renewal that is late: one that was handed over lives for the hand-over
// alone, until it is renewed. The error says that it was lost before, or that ctx
// ended. unclear is told, if it is not nil, of each try that got no clear answer.
func Trust(ctx context.Context, lease *dibs.Lease, grace, ttl time.Duration, unclear func(error)) error {
	need := max(grace+2*Margin(ttl), ttl/2)
	for {
		left := lease.Remaining()
		if left > need {
			return nil
		}
		if err := lease.Check(); err != nil {
			return err
		}
		try, cancel := context.WithTimeout(ctx, left)
		err := lease.Validate(try)
		cancel()
		switch {
		case err == nil:
			continue
		case errors.Is(err, dibs.ErrLost), ctx.Err() != nil:
			return err
		}
		if unclear != nil {
			unclear(err)
		}
		select { // the store has just failed: don't press it
		case <-time.After(20 * time.Millisecond):
		case <-lease.Context().Done():
		}
	}
}
