package redislock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// confirmed asks for c, as acquire.lua wants it. With replicas=n that many of the
// server's replicas have to confirm the grant, or it is given back: that narrows
// the window in which a replica that has not heard of a lock can take the place of
// the server, and does not close it. What a release hands over is not waited for.
//
// WAIT tells of what its own connection wrote before, and holds that connection
// up: so both go over one that carries nothing else.
func (s *Store) confirmed(ctx context.Context, c driver.Claim, e *errand) (rueidis.RedisMessage, error) {
	if s.replicas == 0 {
		return s.asks.call(ctx, e)
	}
	var none rueidis.RedisMessage
	sc := acquireScript
	if err := s.enter(ctx); err != nil {
		return none, err
	}
	if s.keys.plain {
		sc = sc.plain
	}
	if s.inbox.sharded {
		sc = sc.sharded
	}
	conn, err := s.link.apart(ctx)
	if err != nil {
		return none, s.failed(ctx, c.Name, err)
	}
	m, err := conn.eval(ctx, sc, s.on(nil, c.Name), s.with(c.Name, append([]string{"1"}, e.about[:]...)...)).ToMessage()
	if err != nil {
		return m, s.failed(ctx, c.Name, err)
	}
	if read(c.Name, m).err != nil {
		return m, nil // it was not granted
	}
	long := min(max(c.TTL/8, 10*time.Millisecond), time.Second)
	n, err := conn.do(ctx, wait(conn, s.replicas, long)).AsInt64()
	if err == nil && n >= int64(s.replicas) {
		return m, nil
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), long)
	defer cancel()
	c.Token, c.Keep = 0, 0
	_ = s.Release(back, c) // unheard, it ends by its TTL; the answer is unknown either way
	if err != nil {
		return none, s.failed(ctx, c.Name, err)
	}
	return none, fmt.Errorf("redis: %d of %d replicas confirmed the grant within %v: it was given back", n, s.replicas, long)
}

// wait is WAIT, by a command that the client does not know to block: it would give
// that a connection of its own, on which nothing was written.
func wait(c *conn, n int, long time.Duration) rueidis.Completed {
	return c.client.B().Arbitrary("WAIT").Args(strconv.Itoa(n), strconv.FormatInt(long.Milliseconds(), 10)).Build()
}
