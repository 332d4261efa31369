package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/internal/quick"
)

// errSilent says that a server was not heard of for as long as a dial may take.
var errSilent = fmt.Errorf("no answer within %v", dialPatience)

// errGone says that a connection is lost.
var errGone = errors.New("the connection is lost")

// maxUnder bounds the calls under way on one connection. The client's queue has
// 1024 seats, and whoever finds it full waits without looking at its ctx: so
// nobody may find it full.
const maxUnder = 512

// conn is one connection: a client that dials once and never again, so that no
// call ever waits for a dial in it.
type conn struct {
	addr   string
	client rueidis.Client
	raw    atomic.Pointer[tracked]
	lost   chan struct{} // closed when the connection is
	once   sync.Once     // closes lost

	shared bool        // calls on it go to other nodes as well
	waits  atomic.Bool // somebody has waited for a name, and heard of it here

	seats  chan struct{} // one in it for each call under way, answered or not
	calls  atomic.Uint64 // calls sent so far
	silent struct {
		sync.Mutex
		some atomic.Bool // n is not 0
		n    int         // calls that were given up by their callers and not answered yet; each keeps its seat
		last uint64      // the newest of them
	}
}

// dial makes a connection. It ends when ctx does, at the latest by opt's dialer.
func dial(ctx context.Context, opt rueidis.ClientOption) (*conn, error) {
	c := &conn{addr: opt.InitAddress[0], lost: make(chan struct{}), shared: !opt.AlwaysPipelining, seats: make(chan struct{}, maxUnder)}
	var dialled atomic.Bool
	network := "tcp"
	if len(opt.InitAddress[0]) > 0 && opt.InitAddress[0][0] == '/' {
		network = "unix"
	}
	opt.DialCtxFn = func(_ context.Context, addr string, dialer *net.Dialer, conf *tls.Config) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errGone
		}
		d := *dialer
		d.KeepAlive = pingEvery
		dialer = &d
		raw, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		t := &tracked{newEager(quick.New(raw, c.crowded), c.several), c}
		c.raw.Store(t)
		if err := ctx.Err(); err != nil { // perhaps before there was anything to cut
			_ = t.Close()
			return nil, err
		}
		if conf == nil {
			return t, nil
		}
		return overTLS(ctx, t, addr, conf)
	}
	// The client's greeting does not look at ctx: closing the connection ends it.
	stop := context.AfterFunc(ctx, c.cut)
	defer stop()
	client, err := rueidis.NewClient(opt)
	if ctx.Err() != nil && !errors.Is(err, errSilent) {
		err = context.Cause(ctx) // the rest is what cutting it off looks like
	}
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, err
	}
	c.client = client
	return c, nil
}

// overTLS has TLS on t, as tls.Dialer does.
func overTLS(ctx context.Context, t *tracked, addr string, conf *tls.Config) (net.Conn, error) {
	if conf.ServerName == "" {
		conf = conf.Clone()
		conf.ServerName, _, _ = net.SplitHostPort(addr)
	}
	c := tls.Client(t, conf)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = t.Close()
		var plain tls.RecordHeaderError
		switch {
		case errors.Is(context.Cause(ctx), errSilent):
			err = fmt.Errorf("%w to a TLS handshake: does the port speak TLS? redis:// is for one that does not", errSilent)
		case errors.As(err, &plain):
			err = fmt.Errorf("%w: does the port speak TLS? redis:// is for one that does not", err)
		}
		return nil, err
	}
	return c, nil
}

// several tells whether more than one call is under way.
func (c *conn) several() bool { return len(c.seats) > 1 }

// crowded tells whether others want the processors too: more than one call is under
// way, here or on other nodes, or this client waits for names that others have.
func (c *conn) crowded() bool { return c.several() || c.shared || c.waits.Load() }

// tracked is a connection that tells when it was closed.
type tracked struct {
	*eager
	c *conn
}

func (t *tracked) Close() error {
	t.c.once.Do(func() { close(t.c.lost) })
	return t.eager.Close()
}

// do sends cmd and waits for the answer, or for the end of ctx.
func (c *conn) do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return c.seated(ctx, func() rueidis.RedisResult { return c.client.Do(ctx, cmd) })
}

// both sends two commands with nothing between them, and waits for the answer to
// the second.
func (c *conn) both(ctx context.Context, one, two rueidis.Completed) rueidis.RedisResult {
	return c.seated(ctx, func() rueidis.RedisResult { return c.client.DoMulti(ctx, one, two)[1] })
}

// seated makes a call when there is a seat for it.
func (c *conn) seated(ctx context.Context, call func() rueidis.RedisResult) rueidis.RedisResult {
	select {
	case c.seats <- struct{}{}:
	default:
		select {
		case c.seats <- struct{}{}:
		case <-c.lost:
			return rueidis.NewErrorResult(errGone)
		case <-ctx.Done():
			return rueidis.NewErrorResult(ctx.Err())
		}
	}
	number := c.calls.Add(1)
	r := call()
	if err := r.NonRedisError(); err != nil && ctx.Err() != nil {
		c.gaveUp(number)
		return r
	} else if err == nil {
		c.answered(number)
	}
	<-c.seats
	return r
}

// gaveUp notes that the caller of a call has left before its answer came. So
// many such calls mean that the connection hangs: a new one may not.
func (c *conn) gaveUp(number uint64) {
	c.silent.Lock()
	c.silent.n++
	c.silent.some.Store(true)
	c.silent.last = max(c.silent.last, number)
	hangs := c.silent.n >= maxUnder/2
	c.silent.Unlock()
	if hangs {
		c.cut()
	}
}

// answered notes an answer: all calls before that one have had theirs too.
func (c *conn) answered(number uint64) {
	if !c.silent.some.Load() {
		return
	}
	c.silent.Lock()
	n := 0
	if c.silent.last < number {
		n, c.silent.n = c.silent.n, 0
		c.silent.some.Store(false)
	}
	c.silent.Unlock()
	for range n {
		<-c.seats
	}
}

// cut closes the connection, if there is one yet: whatever waits for it fails.
func (c *conn) cut() {
	if t := c.raw.Load(); t != nil {
		_ = t.Close()
	}
}

// close ends the connection and the client's goroutines.
func (c *conn) close() {
	c.cut()
	c.client.Close()
}
