package redislock

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// inbox is where a client hears of its own claims and places: one channel, which
// the scripts publish to. Nothing is subscribed to before somebody wants to hear;
// from then on every connection is, before any call can use it.
type inbox struct {
	keys     keys
	channel  string
	sharded  bool            // the channel is of a slot, and is heard on that slot's node alone
	fleeting bool            // a subscription may end while its connection does not
	ctx      context.Context // ends with close
	end      context.CancelFunc
	heard    sync.WaitGroup // goroutines that receive; each ends with its connection

	mu     sync.Mutex // guards what follows
	on     *listening // the newest connection's; nil: nobody ever wanted to hear
	subs   map[subscriber]*signal
	feeds  map[*feed]struct{}
	closed bool
}

// listening is the subscription of one connection.
type listening struct {
	conn  *conn
	ready chan struct{} // closed when the server has confirmed it, or err is set
	once  sync.Once     // closes ready
	err   error
}

func newInbox(k keys) *inbox {
	ctx, end := context.WithCancel(context.Background())
	return &inbox{
		ctx:     ctx,
		end:     end,
		keys:    k,
		channel: k.prefix + ":to:" + rand.Text(),
		subs:    make(map[subscriber]*signal),
		feeds:   make(map[*feed]struct{}),
	}
}

// greet subscribes on a new connection if somebody listens, and has everybody
// ask again: what was published before has gone by. A server that does not let
// this user subscribe is no reason not to use it.
func (b *inbox) greet(ctx context.Context, c *conn) error {
	b.mu.Lock()
	wanted := b.on != nil
	b.mu.Unlock()
	if !wanted {
		return nil
	}
	if err := b.listen(ctx, c); err != nil && ctx.Err() != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.subs {
		g.send(driver.Signal{})
	}
	return nil
}

// listen returns when c is subscribed.
func (b *inbox) listen(ctx context.Context, c *conn) error {
	b.mu.Lock()
	l := b.on
	if l == nil || l.conn != c {
		l = &listening{conn: c, ready: make(chan struct{})}
		b.on = l
		b.heard.Go(func() { // ends when c is lost
			b.receive(l)
			if b.fleeting {
				b.deafen(l)
			}
		})
	}
	b.mu.Unlock()
	select {
	case <-l.ready:
		return l.err
	case <-c.lost:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive reads what is published, until the connection is lost.
func (b *inbox) receive(l *listening) {
	ctx := rueidis.WithOnSubscriptionHook(b.ctx, func(rueidis.PubSubSubscription) {
		l.once.Do(func() { close(l.ready) })
	})
	sub := l.conn.client.B().Subscribe().Channel(b.channel).Build()
	if b.sharded {
		sub = l.conn.client.B().Ssubscribe().Channel(b.channel).Build()
	}
	err := l.conn.client.Receive(ctx, sub, func(m rueidis.PubSubMessage) { b.message(m.Message) })
	l.once.Do(func() {
		if l.err = err; err == nil {
			l.err = errGone
		}
		close(l.ready)
	})
}

// leave ends the subscription on a client that goes on without us.
func (b *inbox) leave(client rueidis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	cmd := client.B().Unsubscribe().Channel(b.channel).Build()
	if b.sharded {
		cmd = client.B().Sunsubscribe().Channel(b.channel).Build()
	}
	client.Do(ctx, cmd)
}

// deafen ends the subscriptions of all who were to hear on l: the slot may be on
// another node by now, and they subscribe again.
func (b *inbox) deafen(l *listening) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on != l {
		return
	}
	b.on = nil
	for sub, g := range b.subs {
		delete(b.subs, sub)
		close(g.ch)
	}
}

// message reads "what [about it...] length-of-ID ID+key", as lib.lua's tell
// writes it. What can't be read is not for us.
func (b *inbox) message(m string) {
	what, rest, _ := strings.Cut(m, " ")
	ok := true
	next := func() uint64 {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		n, err := strconv.ParseUint(word, 10, 64)
		ok = ok && err == nil
		return n
	}
	var s driver.Signal
	switch what {
	case "ask":
		s.Place = next()
	case "hand":
		s.Place = next()
		s.Grant = &driver.Grant{Token: next(), Fence: next(), TTL: time.Duration(next()) * time.Microsecond, TookOver: next() == 1}
	}
	n := next()
	if !ok || n > uint64(len(rest)) {
		return
	}
	id := rest[:n]
	name, ok := b.keys.nameOf(rest[n:])
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch what {
	case "ask", "hand":
		if g := b.subs[subscriber{name, id}]; g != nil {
			g.send(s)
		}
	case "lost":
		b.lostLocked(driver.Loss{Name: name, ID: id, Err: &driver.NotHeldError{Name: name}})
	case "revoked":
		b.lostLocked(driver.Loss{Name: name, ID: id, Err: driver.ErrRevoked})
	}
}

// close ends all subscriptions, after the last connection was closed.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	for sub, g := range b.subs {
		g.send(driver.Signal{}) // the waiter asks, and hears ErrClosed
		delete(b.subs, sub)
	}
	for f := range b.feeds {
		b.endFeedLocked(f)
	}
	l := b.on
	b.mu.Unlock()
	b.end()
	b.heard.Wait()
	if l != nil && b.fleeting {
		b.leave(l.conn.client)
	}
}
