package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
)

// bsmPlayer is bsm's redislock, which asks again every 100 ms, as its example
// does. It renews nothing by itself.
var bsmPlayer = player{
	name: "bsm/redislock",
	open: func(_ context.Context, where string, ttl time.Duration) (client, error) {
		c := goredis.NewClient(&goredis.Options{Addr: where})
		return bsmClient{c, redislock.New(c), ttl}, nil
	},
}

type bsmClient struct {
	c   *goredis.Client
	l   *redislock.Client
	ttl time.Duration
}

func (b bsmClient) lock(ctx context.Context, name string) (lease, error) {
	for {
		l, err := b.l.Obtain(ctx, name, b.ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // it gives up after a TTL
		default:
			return nil, err
		}
	}
}

func (b bsmClient) Close() error { return b.c.Close() }
