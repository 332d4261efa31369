package drivertest

import (
	"context"

	"github.com/dibslock/dibs/driver"
)

// The powers by which the core chooses its ways, each in a type of its own, so
// that a wrapper can have it or not.

type wrappedWatcher struct {
	inner  driver.Watcher
	around Around
}

// watched is what Watcher.Watch returns.
type watched struct {
	signals <-chan driver.Signal
	stop    func()
}

func (w *wrappedWatcher) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	a := w.around(ctx, Call{Op: OpWatch, Claims: []driver.Claim{c}}, func(ctx context.Context) Answer {
		signals, stop, err := w.inner.Watch(ctx, c)
		return Answer{Value: watched{signals, stop}, Err: err}
	})
	v, _ := a.Value.(watched)
	if a.Err != nil {
		if v.stop != nil {
			v.stop()
		}
		return nil, nil, a.Err
	}
	return v.signals, v.stop, nil
}

type wrappedBatcher struct {
	inner  driver.Batcher
	around Around
}

func (w *wrappedBatcher) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	a := w.around(ctx, Call{Op: OpAcquireAll, Claims: cs}, func(ctx context.Context) Answer {
		gs, err := w.inner.AcquireAll(ctx, cs)
		return Answer{Grants: gs, Err: err}
	})
	return a.Grants, a.Err
}

type wrappedFeed struct {
	inner  driver.LossFeed
	around Around
}

func (w *wrappedFeed) Losses(ctx context.Context) (<-chan driver.Loss, error) {
	a := w.around(ctx, Call{Op: OpLosses}, func(ctx context.Context) Answer {
		losses, err := w.inner.Losses(ctx)
		return Answer{Value: losses, Err: err}
	})
	losses, _ := a.Value.(<-chan driver.Loss)
	return losses, a.Err
}
