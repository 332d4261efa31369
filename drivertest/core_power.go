package drivertest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/dibslock/dibs/driver"
)

var powerLaws = []law{
	{number: 44, name: "AWrapperHasOnlyThePowersItForwards", test: wrapperPowers},
	{number: 44, name: "APowerGoesThroughTheWrapper", test: powersGoThrough},
}

// bare is a store without a power.
type bare struct{ driver.Store }

func wrapperPowers(t *testing.T, s *Stage) {
	store := s.Open(t)
	full, none := Wrap(store, NewLink().Around), Wrap(bare{store}, NewLink().Around)
	_, isWatcher := store.(driver.Watcher)
	_, isBatcher := store.(driver.Batcher)
	_, isFeed := store.(driver.LossFeed)
	for _, row := range []struct {
		power             string
		full, none, inner bool
	}{
		{"Watcher", is[driver.Watcher](full), is[driver.Watcher](none), isWatcher},
		{"Batcher", is[driver.Batcher](full), is[driver.Batcher](none), isBatcher},
		{"LossFeed", is[driver.LossFeed](full), is[driver.LossFeed](none), isFeed},
	} {
		if row.full != row.inner {
			t.Errorf("%s: the store has it: %t, its wrapper: %t", row.power, row.inner, row.full)
		}
		if row.none {
			t.Errorf("%s: a wrapper has it that wraps a store without powers", row.power)
		}
	}
	for op, err := range tryPowers(t, none) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s of a store without powers: %v, want it unsupported", op, err)
		}
	}
}

func is[P any](s driver.Store) bool {
	_, ok := s.(P)
	return ok
}

func powersGoThrough(t *testing.T, s *Stage) {
	link, calls := NewLink(), new(Recorder)
	store := Wrap(Wrap(s.Open(t), link.Around), calls.Around)
	link.Set(CutBefore)
	for op, err := range tryPowers(t, store) {
		if !errors.Is(err, ErrCut) {
			t.Errorf("%s went around the link: %v", op, err)
		}
		if n := len(calls.Calls(op)); n != 1 {
			t.Errorf("%s: %d calls were recorded, want 1", op, n)
		}
	}
}

// tryPowers calls every method of every optional power that s has by its type,
// and yields what came of it.
func tryPowers(t testing.TB, s driver.Store) iter.Seq2[Op, error] {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c := Mutex(lockName, s.Facts().MinTTL)
	return func(yield func(Op, error) bool) {
		all := make(map[Op]error)
		if p, ok := s.(driver.Watcher); ok {
			_, _, all[OpWatch] = p.Watch(ctx, c)
		}
		if p, ok := s.(driver.Batcher); ok {
			_, all[OpAcquireAll] = p.AcquireAll(ctx, []driver.Claim{c})
		}
		if p, ok := s.(driver.LossFeed); ok {
			_, all[OpLosses] = p.Losses(ctx)
		}
		if p, ok := s.(driver.Lister); ok {
			all[OpList] = firstError(p.List(ctx, ""))
		}
		if p, ok := s.(driver.Revoker); ok {
			all[OpRevoke] = p.Revoke(ctx, driver.Revocation{Name: lockName, Token: 1})
		}
		if p, ok := s.(driver.Journal); ok {
			all[OpEvents] = firstError(p.Events(ctx, "", 0))
		}
		if p, ok := s.(driver.Records); ok {
			_, _, all[OpGet] = p.Get(ctx, "key")
			_, all[OpPut] = p.Put(ctx, driver.Record{Key: "key"})
			all[OpDelete] = p.Delete(ctx, "key", 1)
			all[OpListRecords] = firstError(p.ListRecords(ctx, ""))
		}
		for op, err := range all {
			if !yield(op, err) {
				return
			}
		}
	}
}

// firstError is the error that ends seq.
func firstError[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}
