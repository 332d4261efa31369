package main

import (
	"context"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
)

// redsyncPlayer is redsync on one server, with its own delays between tries, of
// which it has as many as it needs. It renews nothing by itself.
var redsyncPlayer = player{
	name:  "redsync",
	sends: []string{"set"},
	open: func(_ context.Context, where string, ttl time.Duration) (client, error) {
		c := goredis.NewClient(&goredis.Options{Addr: where})
		return redsyncClient{c, redsync.New(redsyncpool.NewPool(c)), ttl}, nil
	},
}

type redsyncClient struct {
	c   *goredis.Client
	rs  *redsync.Redsync
	ttl time.Duration
}

type redsyncLease struct{ m *redsync.Mutex }

func (r redsyncClient) lock(ctx context.Context, name string) (lease, error) {
	m := r.rs.NewMutex(name, redsync.WithExpiry(r.ttl), redsync.WithTries(math.MaxInt32))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncLease{m}, nil
}

func (l redsyncLease) Release(ctx context.Context) error {
	_, err := l.m.UnlockContext(ctx)
	return err
}

func (r redsyncClient) Close() error { return r.c.Close() }
