package dibs

import (
	"context"
	"errors"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A run is a Once that holds the lock.
type run struct {
	*Once
	lease *Lease
	id    string // tells the runs under one lease apart
	again bool
	past  *OnceState // what was done before; nil: it is ours to do
}

func (r *run) do(ctx context.Context, fn func(context.Context, Run) ([]byte, error)) (result []byte, ran bool, err error) {
	if err := r.begin(ctx); err != nil {
		return nil, false, err
	}
	if r.past != nil {
		return r.past.Result, false, nil
	}
	if err := r.lease.Check(); err != nil { // as if it had been interrupted
		return nil, false, err
	}
	result, err = fn(ctx, Run{Fence: r.lease.Fence(), Again: r.again})
	// What became of it is written down whatever becomes of the caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.client.set.TTL)
	defer cancel()
	if err != nil {
		if r.lease.Check() == nil {
			err = errors.Join(err, r.abandon(ctx))
		}
		return nil, true, err
	}
	return result, true, r.finish(ctx, result)
}

// mine tells whether the record was written by this run.
func (r *run) mine(s OnceState) bool { return s.Run == r.id }

// begin writes that the run is pending, unless it was done before. The lock is
// held, so whoever wrote "pending" under an older token of the same name has lost
// it (law 51).
func (r *run) begin(ctx context.Context) error {
	r.past = nil
	return r.edit(ctx, func(rec driver.Record, now time.Time) (*driver.Record, error) {
		s, err := r.state(rec)
		if err != nil {
			return nil, err
		}
		switch {
		case r.mine(s): // an answer was lost, and it had been written
			return nil, nil
		case s.Status == Absent:
		case r.matches(s) != nil:
			return nil, r.matches(s)
		case s.Status == Done:
			r.past = &s
			return nil, nil
		case rec.TokenName != r.lease.Name():
			return nil, r.rejected("a run is pending under the lock %q; under %q nothing is known about it", rec.TokenName, r.lease.Name())
		case rec.Token == r.lease.Token(): // two under one lease: neither lock nor token tells them apart
			return nil, &HeldError{Name: r.name}
		case r.options.Interrupted == Refuse:
			return nil, &InterruptedError{Key: r.name, State: s}
		default:
			r.again = true
		}
		return r.record(OnceState{Status: Pending, Request: r.options.Request, Since: now}, r.keep+pendingLonger)
	})
}

// finish writes that the run is done.
func (r *run) finish(ctx context.Context, result []byte) error {
	var long error
	if len(result) > MaxResult {
		long = r.rejected("done, but its result of %d bytes is not kept: at most %d are", len(result), MaxResult)
		result = nil
	}
	err := r.edit(ctx, func(rec driver.Record, now time.Time) (*driver.Record, error) {
		s, err := r.state(rec)
		switch {
		case err != nil:
			return nil, err
		case r.mine(s) && s.Status == Done:
			return nil, nil
		case s.Status != Absent && !r.mine(s):
			return nil, r.failed(errTakenOver)
		}
		return r.record(OnceState{Status: Done, Request: r.options.Request, Since: now, Result: result}, r.keep)
	})
	return errors.Join(err, long)
}

// errTakenOver is certain: nothing was written.
var errTakenOver = errors.Join(errors.New("done, but another run has taken over meanwhile"), driver.ErrFenced)

// abandon forgets the run, which says itself that it did nothing.
func (r *run) abandon(ctx context.Context) error {
	return r.edit(ctx, func(rec driver.Record, _ time.Time) (*driver.Record, error) {
		if s, err := r.state(rec); err != nil || !r.mine(s) {
			return nil, err
		}
		return &driver.Record{}, nil
	})
}

func (r *run) record(s OnceState, keep time.Duration) (*driver.Record, error) {
	s.Run, s.Note = r.id, r.client.set.Note
	value, err := s.encode()
	return &driver.Record{Value: value, TokenName: r.lease.Name(), Token: r.lease.Token(), Retention: keep}, err
}
