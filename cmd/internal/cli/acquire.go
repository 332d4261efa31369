package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dibslock/dibs"
)

// lock takes the lock, at once or after a wait.
func (s *session) lock(locker *dibs.Locker) (*dibs.Lease, error) {
	ctx, done := s.waiting(s.in)
	lease, err := s.acquire(ctx, locker)
	sig := done()
	s.result.Waited = time.Since(s.began).Milliseconds()
	switch {
	case err != nil:
		return nil, s.without(s.refused(err, sig))
	case sig != nil: // it came after the wait, or in the moment of the grant
		s.giveBack(lease, giveBackTime)
		return nil, (&signalError{sig}).failure(s.key)
	}
	return lease, nil
}

func (s *session) acquire(ctx context.Context, locker *dibs.Locker) (*dibs.Lease, error) {
	if !s.wait.wanted {
		return locker.TryLock(ctx)
	}
	defer s.watch.start()()
	lease, err := locker.Lock(ctx)
	for err == nil && ctx.Err() == nil && s.trust(lease) != nil {
		// It was handed over, and lapsed before it could be renewed: nothing was
		// started under it, so there is nothing lost. Back into the line.
		s.log.Info("the hand-over lapsed, waiting again", "key", s.key)
		_ = lease.Release(ctx)
		lease, err = locker.Lock(ctx)
	}
	return lease, err
}

// refused turns the error of an acquire into a failure.
func (s *session) refused(err error, sig os.Signal) error {
	if sig != nil {
		return (&signalError{sig}).failure(s.key)
	}
	var held *dibs.HeldError
	if errors.As(err, &held) {
		held = s.watch.aged(time.Now(), held)
		if held.Holder != nil {
			holder := newClaimStatus(*held.Holder)
			s.result.Holder = &holder
		}
		return s.skip(s.inTheWay(held))
	}
	return s.place.cannot("lock", s.key, s.over(err))
}

// over says of a wait that is over how long it was.
func (s *session) over(err error) error {
	var over *dibs.WaitError
	switch {
	case !errors.As(err, &over):
		return err
	case over.Last == nil:
		return fmt.Errorf("no answer within %s", short(over.Waited))
	}
	return fmt.Errorf("waited for %s; at last: %w", short(over.Waited), over.Last)
}

// skip is how a run ends that was skipped.
func (s *session) skip(why string) error {
	s.result.Outcome = outcomeSkipped
	skip := &failure{code: s.conflict.value}
	switch {
	case s.quiet:
	case s.wait.wanted:
		skip.text = fmt.Sprintf("skipped after %s: %s", short(time.Since(s.began)), why)
	default:
		skip.text = "skipped: " + why
	}
	return skip
}

// inTheWay says who is in the way, and what can be done about it.
func (s *session) inTheWay(held *dibs.HeldError) string {
	advice := "Wait with --wait"
	if s.wait.wanted {
		advice = "Wait longer with --wait=DUR"
	}
	now := time.Now()
	why := inTheWay(now, held)
	if s.slots.value > 1 && !s.quiet {
		why = cmp.Or(full(now, s.watch.status(context.Background(), held.Name), s.slots.value), why)
	}
	return refusal(why, held, advice+"; inspect with: dibs show "+shellWord(held.Name))
}
