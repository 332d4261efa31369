package drivertest

import (
	"context"
	"iter"
	"time"

	"github.com/dibslock/dibs/driver"
)

// An Op names a method of a store.
type Op string

// The methods of a store and of its optional powers.
const (
	OpAcquire     Op = "acquire"
	OpRenew       Op = "renew"
	OpRelease     Op = "release"
	OpWatch       Op = "watch"
	OpAcquireAll  Op = "acquire all"
	OpLosses      Op = "losses"
	OpList        Op = "list"
	OpRevoke      Op = "revoke"
	OpEvents      Op = "events"
	OpGet         Op = "get"
	OpPut         Op = "put"
	OpDelete      Op = "delete"
	OpListRecords Op = "list records"
)

// A Call is one call of a store.
type Call struct {
	Op     Op
	Claims []driver.Claim // what it is about: of acquire, renew, release, watch, acquire all
	Arg    any            // of the other ops: the prefix, the key, the Revocation or the Record
}

// An Answer is what a call returned. Only the fields of its op are set.
type Answer struct {
	Grants []driver.Grant
	Proofs []driver.Proof
	Value  any // of the other ops
	Err    error
}

// An Around stands around every call of a store: it may look, wait, call do
// never, once, or later, and answer something else.
type Around func(ctx context.Context, c Call, do func(context.Context) Answer) Answer

// Wrap puts around in front of every call of s. It forwards each optional power
// of s by name (law 44). Of Watcher, Batcher and LossFeed, by which the core
// chooses its ways, the wrapper has exactly those that s has; the others answer
// that they are unsupported if s lacks them.
func Wrap(s driver.Store, around Around) driver.Store {
	w := &wrapped{inner: s, around: around}
	watch, isWatcher := s.(driver.Watcher)
	batch, isBatcher := s.(driver.Batcher)
	losses, isFeed := s.(driver.LossFeed)
	type (
		watcher = driver.Watcher
		batcher = driver.Batcher
		feed    = driver.LossFeed
	)
	ww, wb, wf := &wrappedWatcher{watch, around}, &wrappedBatcher{batch, around}, &wrappedFeed{losses, around}
	switch {
	case isWatcher && isBatcher && isFeed:
		return struct {
			*wrapped
			watcher
			batcher
			feed
		}{w, ww, wb, wf}
	case isWatcher && isBatcher:
		return struct {
			*wrapped
			watcher
			batcher
		}{w, ww, wb}
	case isWatcher && isFeed:
		return struct {
			*wrapped
			watcher
			feed
		}{w, ww, wf}
	case isBatcher && isFeed:
		return struct {
			*wrapped
			batcher
			feed
		}{w, wb, wf}
	case isWatcher:
		return struct {
			*wrapped
			watcher
		}{w, ww}
	case isBatcher:
		return struct {
			*wrapped
			batcher
		}{w, wb}
	case isFeed:
		return struct {
			*wrapped
			feed
		}{w, wf}
	}
	return w
}

// wrapped is a store, a Lister, a Revoker, a Journal and Records.
type wrapped struct {
	inner  driver.Store
	around Around
}

func (w *wrapped) Facts() driver.Facts { return w.inner.Facts() }

func (w *wrapped) Close() error { return w.inner.Close() }

func (w *wrapped) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	a := w.around(ctx, Call{Op: OpAcquire, Claims: []driver.Claim{c}}, func(ctx context.Context) Answer {
		g, err := w.inner.Acquire(ctx, c)
		return Answer{Grants: []driver.Grant{g}, Err: err}
	})
	if len(a.Grants) == 0 {
		return driver.Grant{}, a.Err
	}
	return a.Grants[0], a.Err
}

func (w *wrapped) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	a := w.around(ctx, Call{Op: OpRenew, Claims: cs}, func(ctx context.Context) Answer {
		ps, err := w.inner.Renew(ctx, cs)
		return Answer{Proofs: ps, Err: err}
	})
	return a.Proofs, a.Err
}

func (w *wrapped) Release(ctx context.Context, c driver.Claim) error {
	return w.around(ctx, Call{Op: OpRelease, Claims: []driver.Claim{c}}, func(ctx context.Context) Answer {
		return Answer{Err: w.inner.Release(ctx, c)}
	}).Err
}

func (w *wrapped) Revoke(ctx context.Context, r driver.Revocation) error {
	return w.around(ctx, Call{Op: OpRevoke, Arg: r}, func(ctx context.Context) Answer {
		p, ok := w.inner.(driver.Revoker)
		if !ok {
			return lacks(w.inner, OpRevoke)
		}
		return Answer{Err: p.Revoke(ctx, r)}
	}).Err
}

func (w *wrapped) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return listed(ctx, w, Call{Op: OpList, Arg: prefix}, func(ctx context.Context) (iter.Seq2[driver.Holder, error], bool) {
		p, ok := w.inner.(driver.Lister)
		if !ok {
			return nil, false
		}
		return p.List(ctx, prefix), true
	})
}

func (w *wrapped) Events(ctx context.Context, prefix string, seq uint64) iter.Seq2[driver.Event, error] {
	return listed(ctx, w, Call{Op: OpEvents, Arg: prefix}, func(ctx context.Context) (iter.Seq2[driver.Event, error], bool) {
		p, ok := w.inner.(driver.Journal)
		if !ok {
			return nil, false
		}
		return p.Events(ctx, prefix, seq), true
	})
}

func (w *wrapped) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.Record, error] {
	return listed(ctx, w, Call{Op: OpListRecords, Arg: prefix}, func(ctx context.Context) (iter.Seq2[driver.Record, error], bool) {
		p, ok := w.inner.(driver.Records)
		if !ok {
			return nil, false
		}
		return p.ListRecords(ctx, prefix), true
	})
}

// got is what Records.Get returns.
type got struct {
	record driver.Record
	now    time.Time
}

func (w *wrapped) Get(ctx context.Context, key string) (driver.Record, time.Time, error) {
	a := w.around(ctx, Call{Op: OpGet, Arg: key}, func(ctx context.Context) Answer {
		p, ok := w.inner.(driver.Records)
		if !ok {
			return lacks(w.inner, OpGet)
		}
		r, now, err := p.Get(ctx, key)
		return Answer{Value: got{r, now}, Err: err}
	})
	v, _ := a.Value.(got)
	return v.record, v.now, a.Err
}

func (w *wrapped) Put(ctx context.Context, r driver.Record) (uint64, error) {
	a := w.around(ctx, Call{Op: OpPut, Arg: r}, func(ctx context.Context) Answer {
		p, ok := w.inner.(driver.Records)
		if !ok {
			return lacks(w.inner, OpPut)
		}
		v, err := p.Put(ctx, r)
		return Answer{Value: v, Err: err}
	})
	v, _ := a.Value.(uint64)
	return v, a.Err
}

func (w *wrapped) Delete(ctx context.Context, key string, version uint64) error {
	return w.around(ctx, Call{Op: OpDelete, Arg: key}, func(ctx context.Context) Answer {
		p, ok := w.inner.(driver.Records)
		if !ok {
			return lacks(w.inner, OpDelete)
		}
		return Answer{Err: p.Delete(ctx, key, version)}
	}).Err
}

// lacks is the answer to an op of a power that s has not.
func lacks(s driver.Store, op Op) Answer {
	return Answer{Err: driver.Unsupportedf("%s is not supported by %s", op, s.Facts().Driver)}
}

// listed runs a listing inside one call of around.
func listed[T any](ctx context.Context, w *wrapped, c Call, list func(context.Context) (iter.Seq2[T, error], bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		a := w.around(ctx, c, func(ctx context.Context) Answer {
			seq, ok := list(ctx)
			if !ok {
				return lacks(w.inner, c.Op)
			}
			var all []T
			for v, err := range seq {
				if err != nil {
					return Answer{Value: all, Err: err}
				}
				all = append(all, v)
			}
			return Answer{Value: all}
		})
		all, _ := a.Value.([]T)
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
		if a.Err != nil {
			var zero T
			yield(zero, a.Err)
		}
	}
}
