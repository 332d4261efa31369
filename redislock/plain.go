package redislock

import (
	"context"
	"iter"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A Plain store shares its locks with programs that are not dibs: a lock is the
// string at the key that is the name itself, set by SET key token NX PX, renewed
// and deleted by scripts that compare the token first. It is what redsync, bsm's
// redislock, redis-py's Lock and node-redlock do on one server.
//
// Such a lock is exclusive. There is no line and no signal: a waiter looks again
// when the lock's time is up, and else every second or so. What those programs
// can't know stands beside the lock (see lua/plain.lua): so tokens, Keep, Delay
// and revocation are as ever among the users of this package, and another
// program is only kept out. A key that it set without a time to live, or that is
// no string, is an ErrRejected and is not waited for.
//
// It is a driver.Batcher, LossFeed, Lister and Revoker and has Records. It lists
// what was locked through it, and another program's lock if its name is all of the
// prefix, or its lock stands in the place of one of ours.
type Plain struct{ s *Store }

// Facts tells what the store promises.
func (p *Plain) Facts() driver.Facts { return p.s.Facts() }

// Close is Store.Close.
func (p *Plain) Close() error { return p.s.Close() }

// Acquire is Store.Acquire, without a line.
func (p *Plain) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return p.s.Acquire(ctx, c)
}

// AcquireAll is Store.AcquireAll.
func (p *Plain) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	return p.s.AcquireAll(ctx, cs)
}

// Renew is Store.Renew.
func (p *Plain) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	return p.s.Renew(ctx, cs)
}

// Release is Store.Release.
func (p *Plain) Release(ctx context.Context, c driver.Claim) error { return p.s.Release(ctx, c) }

// Revoke is Store.Revoke. It never takes away another program's lock.
func (p *Plain) Revoke(ctx context.Context, r driver.Revocation) error { return p.s.Revoke(ctx, r) }

// Losses is Store.Losses.
func (p *Plain) Losses(ctx context.Context) (<-chan driver.Loss, error) { return p.s.Losses(ctx) }

// List is Store.List, and yields another program's lock whose name is prefix too.
func (p *Plain) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return p.s.List(ctx, prefix)
}

// Get is Store.Get.
func (p *Plain) Get(ctx context.Context, key string) (driver.Record, time.Time, error) {
	return p.s.Get(ctx, key)
}

// Put is Store.Put.
func (p *Plain) Put(ctx context.Context, r driver.Record) (uint64, error) { return p.s.Put(ctx, r) }

// Delete is Store.Delete.
func (p *Plain) Delete(ctx context.Context, key string, version uint64) error {
	return p.s.Delete(ctx, key, version)
}

// ListRecords is Store.ListRecords.
func (p *Plain) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.Record, error] {
	return p.s.ListRecords(ctx, prefix)
}
