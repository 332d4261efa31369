package pglock

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibslock/dibs/driver"
)

// call runs f on a connection that is kept for what is not about one name. The
// caller returns with its ctx even if the server hangs; its statement is given up
// then, and its connection.
func (t *Table) call(ctx context.Context, f func(context.Context, *session) error) error {
	if ctx.Err() != nil {
		return left(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(driver.ErrClosed) })()
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return left(ctx)
	}
	s, err := t.borrow(ctx)
	if err != nil {
		return t.callFailed(ctx, err)
	}
	err = f(ctx, s)
	t.putBack(s, err)
	if err == nil || driver.Certain(err) {
		return err
	}
	return t.callFailed(ctx, err)
}

// borrow returns a connection that answers: one that died unnoticed costs a caller
// a round trip more, and not the knowledge of what became of its call.
func (t *Table) borrow(ctx context.Context) (*session, error) {
	for {
		t.mu.Lock()
		var s *session
		if k := len(t.spare); k > 0 {
			s, t.spare = t.spare[k-1], t.spare[:k-1]
		}
		closed := t.closed
		t.mu.Unlock()
		switch {
		case closed:
			return nil, driver.ErrClosed
		case s == nil:
			return t.dial.connect(ctx)
		case s.Ping(ctx) == nil:
			return s, nil
		}
		s.drop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// putBack keeps s for the next call, unless there are enough or it is of no use
// after err.
func (t *Table) putBack(s *session, err error) {
	t.mu.Lock()
	keep := len(t.spare) < t.spares && !t.closed && !s.IsClosed() && code(err) != codeReadOnly
	if keep {
		t.spare = append(t.spare, s)
	}
	t.mu.Unlock()
	switch {
	case keep:
	case s.IsClosed():
		s.drop()
	default:
		s.bye()
	}
}

func (t *Table) callFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return left(ctx)
	}
	if err := refusedForGood(t.schema, err); err != nil {
		return err
	}
	var re *driver.RejectedError
	if errors.As(err, &re) {
		return err
	}
	return unknown(fmt.Errorf("schema %s: %w", t.schema, err))
}
