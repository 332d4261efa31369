package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// redisFloor is SET NX PX and a compare-and-delete script. If the key is there it
// sleeps for as long as the key lives.
var redisFloor = player{name: "floor: SET NX PX, EVALSHA", sends: []string{"set", "pttl"}, open: openRedisFloor}

// redisQueue is a queue of one element: whoever pops it has the lock.
var redisQueue = player{name: "floor: BLPOP, LPUSH", sends: []string{"blpop", "lpush"}, open: openRedisQueue, seed: seedRedisQueue}

// redisRenewer is redisFloor, and renews all that it holds in one pipeline.
var redisRenewer = player{name: "floor: SET NX PX, EVALSHA in a pipeline", sends: []string{"set", "pttl"}, open: openRedisRenewer}

func dialRedis(where string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{where}, DisableCache: true, ForceSingleClient: true})
}

type floorClient struct {
	c   rueidis.Client
	ttl time.Duration
}

type floorLease struct {
	f        *floorClient
	name, id string
}

func openRedisFloor(_ context.Context, where string, ttl time.Duration) (client, error) {
	c, err := dialRedis(where)
	return &floorClient{c, ttl}, err
}

func (f *floorClient) lock(ctx context.Context, name string) (lease, error) {
	id := rand.Text()
	for {
		err := f.c.Do(ctx, f.c.B().Set().Key(name).Value(id).Nx().Px(f.ttl).Build()).Error()
		if err == nil {
			return &floorLease{f, name, id}, nil
		}
		if !rueidis.IsRedisNil(err) {
			return nil, err
		}
		left, err := f.c.Do(ctx, f.c.B().Pttl().Key(name).Build()).AsInt64()
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(left) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var compareAndDelete = rueidis.NewLuaScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`)

func (l *floorLease) Release(ctx context.Context) error {
	n, err := compareAndDelete.Exec(ctx, l.f.c, []string{l.name}, []string{l.id}).AsInt64()
	if err == nil && n != 1 {
		err = fmt.Errorf("the key %s was not ours any more", l.name)
	}
	return err
}

func (f *floorClient) Close() error {
	f.c.Close()
	return nil
}

type queueClient struct{ c rueidis.Client }

type queueLease struct {
	q    *queueClient
	name string
}

func openRedisQueue(_ context.Context, where string, _ time.Duration) (client, error) {
	c, err := dialRedis(where)
	return &queueClient{c}, err
}

func seedRedisQueue(ctx context.Context, where string, names []string) error {
	c, err := dialRedis(where)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Do(ctx, c.B().Lpush().Key(names[0]).Element("1").Build()).Error()
}

func (q *queueClient) lock(ctx context.Context, name string) (lease, error) {
	if err := q.c.Do(ctx, q.c.B().Blpop().Key(name).Timeout(0).Build()).Error(); err != nil {
		return nil, err
	}
	return &queueLease{q, name}, nil
}

func (l *queueLease) Release(ctx context.Context) error {
	return l.q.c.Do(ctx, l.q.c.B().Lpush().Key(l.name).Element("1").Build()).Error()
}

func (q *queueClient) Close() error {
	q.c.Close()
	return nil
}

type renewer struct {
	*floorClient
	end  context.CancelFunc
	done chan struct{} // closed when renew has returned

	mu   sync.Mutex // guards held
	held []rueidis.LuaExec
}

func openRedisRenewer(ctx context.Context, where string, ttl time.Duration) (client, error) {
	c, err := dialRedis(where)
	if err != nil {
		return nil, err
	}
	r := &renewer{floorClient: &floorClient{c, ttl}, done: make(chan struct{})}
	ctx, r.end = context.WithCancel(ctx)
	go r.renew(ctx) // ends with Close
	return r, nil
}

func (r *renewer) lock(ctx context.Context, name string) (lease, error) {
	l, err := r.floorClient.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = append(r.held, rueidis.LuaExec{Keys: []string{name}, Args: []string{l.(*floorLease).id, fmt.Sprint(r.ttl.Milliseconds())}})
	return l, nil
}

var compareAndExpire = rueidis.NewLuaScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) else return 0 end`)

func (r *renewer) renew(ctx context.Context) {
	defer close(r.done)
	for tick := time.Tick(r.ttl / 3); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		held := r.held
		r.mu.Unlock()
		if len(held) > 0 {
			compareAndExpire.ExecMulti(ctx, r.c, held...)
		}
	}
}

func (r *renewer) Close() error {
	r.end()
	<-r.done
	return r.floorClient.Close()
}
