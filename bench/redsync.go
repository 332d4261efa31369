package main

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
)

// redsyncPlayer is redsync on one server or several, with its own delays between tries, of
// which it has as many as it needs. It renews nothing by itself.
var redsyncPlayer = player{
	name:  "redsync",
	sends: []string{"set"},
	open:  openRedsync,
}

type redsyncClient struct {
	cs  []*goredis.Client // one for each node
	rs  *redsync.Redsync
	ttl time.Duration
}

// openRedsync makes a client of the servers that where lists.
func openRedsync(_ context.Context, where string, ttl time.Duration) (client, error) {
	var cs []*goredis.Client
	var pools []redsyncredis.Pool
	for addr := range strings.SplitSeq(where, ",") {
		c := goredis.NewClient(&goredis.Options{Addr: addr})
		cs, pools = append(cs, c), append(pools, redsyncpool.NewPool(c))
	}
	return redsyncClient{cs, redsync.New(pools...), ttl}, nil
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

func (r redsyncClient) Close() error {
	var errs []error
	for _, c := range r.cs {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
