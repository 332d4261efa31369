package redislock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	dialPatience = 3 * time.Second        // how long a dial with its greeting may take
	pingEvery    = time.Second            // an idle connection is asked whether it lives
	pingPatience = 4 * time.Second        // and given up if it is silent for so long
	minPause     = 5 * time.Millisecond   // between a dial that failed and the next
	maxPause     = 250 * time.Millisecond // at the most
)

// link keeps a connection to the server: when one is lost, it dials the next in
// the background. Calls wait for it no longer than their ctx, or than the dial
// that is under way.
type link struct {
	opt   rueidis.ClientOption
	greet func(ctx context.Context, c *conn) error // prepares a new connection

	// locate tells where the server is; nil: at opt's address, always. A server that
	// is not what it was located as is left.
	locate func(ctx context.Context) (addr string, err error)

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu   sync.Mutex // guards what follows
	now  *conn      // nil: there is none
	news chan struct{}
	err  error // why the last dial failed
	twin *link // for apart; nil: nobody asked for it yet
}

// newLink dials for the first time and returns a link, or why there is none.
func newLink(ctx context.Context, c config, greet func(context.Context, *conn) error) (*link, error) {
	l := makeLink(c.client, greet)
	l.locate = c.locate
	first, err := l.dial(ctx)
	if err != nil {
		l.cancel()
		return nil, err
	}
	l.now = first
	go l.run(first) // ends with close
	return l, nil
}

// startLink returns a link whose first dial is under way.
func startLink(opt rueidis.ClientOption, greet func(context.Context, *conn) error) *link {
	l := makeLink(opt, greet)
	go l.run(nil) // ends with close
	return l
}

// startDirect is startLink for one goroutine, which writes and reads by itself: a
// call is not ended by its ctx but by cutting the connection, and nothing asks an
// idle one whether it lives.
func startDirect(opt rueidis.ClientOption, greet func(context.Context, *conn) error) *link {
	l := makeLink(opt, greet)
	l.opt.AlwaysPipelining = false
	l.opt.Dialer.KeepAlive = -1
	go l.run(nil) // ends with close
	return l
}

func makeLink(opt rueidis.ClientOption, greet func(context.Context, *conn) error) *link {
	opt.Dialer.Timeout = dialPatience
	opt.Dialer.KeepAlive = pingEvery
	opt.ConnWriteTimeout = pingPatience
	opt.ForceSingleClient = true
	opt.AlwaysPipelining = true // a call outside the pipeline looks at its ctx's deadline alone
	opt.DisableRetry = true     // what may have been applied is not sent again
	opt.DisableCache = true
	opt.PipelineMultiplex = -1 // one connection
	l := &link{opt: opt, greet: greet, done: make(chan struct{}), news: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// dial makes a connection that has been greeted.
func (l *link) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialPatience, errSilent)
	defer cancel()
	opt := l.opt
	if l.locate != nil {
		addr, err := l.locate(ctx)
		if err != nil {
			return nil, err
		}
		opt = at(opt, addr)
	}
	c, err := dial(ctx, opt)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.cut) // whether or not the greeting looks at ctx
	defer stop()
	if err = l.greet(ctx, c); err == nil && l.locate != nil {
		err = isMaster(ctx, c)
	}
	if err != nil {
		c.close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return c, nil
}

// run replaces c, and each connection after it, when it is lost; nil: there is
// none yet.
func (l *link) run(c *conn) {
	defer close(l.done)
	for {
		if c != nil {
			select {
			case <-c.lost:
			case <-l.ctx.Done():
			}
			l.set(nil, nil)
			c.close()
		}
		for pause := minPause; ; pause = min(2*pause, maxPause) {
			if l.ctx.Err() != nil {
				return
			}
			next, err := l.dial(l.ctx)
			l.set(next, err)
			if err == nil {
				c = next
				break
			}
			select {
			case <-time.After(pause):
			case <-l.ctx.Done():
			}
		}
	}
}

// set makes c, or err, what calls get, and tells those that wait.
func (l *link) set(c *conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.err = c, err
	close(l.news)
	l.news = make(chan struct{})
}

// get returns the connection. If there is none it waits for the next dial's end.
func (l *link) get(ctx context.Context) (*conn, error) {
	for {
		l.mu.Lock()
		c, news := l.now, l.news
		l.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-news:
		case <-l.ctx.Done():
			return nil, errGone
		case <-ctx.Done():
			if context.Cause(ctx) == errSilent {
				return nil, errSilent
			}
			return nil, ctx.Err()
		}
		l.mu.Lock()
		c, err := l.now, l.err
		l.mu.Unlock()
		if c == nil && err != nil {
			return nil, fmt.Errorf("not connected: %w", err)
		}
	}
}

// present returns the connection; nil: there is none at the moment.
func (l *link) present() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// ready is get, but does not wait again for a server that the last dial did not
// reach.
func (l *link) ready(ctx context.Context) (*conn, error) {
	l.mu.Lock()
	c, err := l.now, l.err
	l.mu.Unlock()
	if c == nil && err != nil {
		return nil, fmt.Errorf("not connected: %w", err)
	}
	return l.get(ctx)
}

// apart returns a second connection to the same server.
func (l *link) apart(ctx context.Context) (*conn, error) {
	l.mu.Lock()
	if l.twin == nil && l.ctx.Err() == nil {
		l.twin = makeLink(l.opt, func(context.Context, *conn) error { return nil })
		l.twin.locate = l.locate
		go l.twin.run(nil) // ends with close
	}
	twin := l.twin
	l.mu.Unlock()
	if twin == nil {
		return nil, errGone
	}
	return twin.get(ctx)
}

func (l *link) options() rueidis.ClientOption { return l.opt }

// do sends a command that build makes.
func (l *link) do(ctx context.Context, build func(rueidis.Builder) rueidis.Completed) rueidis.RedisResult {
	c, err := l.get(ctx)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return c.do(ctx, build(c.client.B()))
}

// eval runs s. A server that does not know it certainly did not run it, and is
// sent its text.
func (l *link) eval(ctx context.Context, s *script, keys, args []string) rueidis.RedisResult {
	c, err := l.get(ctx)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	r := c.eval(ctx, s, keys, args)
	if e, ok := rueidis.IsRedisErr(r.Error()); ok && l.locate != nil && strings.HasPrefix(e.Error(), "READONLY") {
		c.cut()
	}
	return r
}

// eval is link.eval on one connection.
func (c *conn) eval(ctx context.Context, s *script, keys, args []string) rueidis.RedisResult {
	r := c.do(ctx, c.client.B().Evalsha().Sha1(s.sha()).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
		r = c.do(ctx, c.client.B().Eval().Script(s.text()).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return r
}

// close ends the connection and waits for what keeps it up.
func (l *link) close() {
	l.cancel()
	<-l.done
	l.mu.Lock()
	twin := l.twin
	l.mu.Unlock()
	if twin != nil {
		twin.close()
	}
}
