package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
)

func TestPassForwardsBothWays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.dial()
	c.want("OK", "SET", b.key, "v")
	c.want("v", "GET", b.key)
	if v := b.direct("GET", b.key); v != "v" {
		t.Errorf("server has %v", v)
	}
	set := len(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nv\r\n", len(b.key), b.key))
	get := len(fmt.Sprintf("*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(b.key), b.key))
	want := proxy.Stats{Accepted: 1, Open: 1, Requests: int64(set + get), Replies: int64(len("+OK\r\n$1\r\nv\r\n"))}
	if s := b.Stats(); s != want {
		t.Errorf("stats = %+v, want %+v", s, want)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b.idle()
}

func TestPassForwardsMoreThanItHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	big := strings.Repeat("dibs", 8<<20)
	c := b.dial()
	c.want("OK", "SET", b.key, big)
	c.want(big, "GET", b.key)
	c.want(int64(1), "DEL", b.key)
}

func TestPassForwardsTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.dial()
	c.want("OK", "QUIT") // the server closes
	if v, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after QUIT: %v, %v, want EOF", v, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b.idle()
}

func TestRefuseResetsNewConnections(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := b.dial()
	old.want("PONG", "PING")
	b.Set(proxy.Refuse)
	wantRefused(t, b)
	old.want("PONG", "PING")
	b.Heal()
	b.dial().want("PONG", "PING")
	if s := b.Stats(); s.Accepted != 3 || s.Refused != 1 || s.Open != 2 {
		t.Errorf("stats = %+v, want 3 accepted, 1 refused, 2 open", s)
	}
}

func TestServerThatIsDownRefuses(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	b := &bench{t: t, r: r, Proxy: proxy.New(t, r.Addr())}
	c := b.dial()
	c.want("PONG", "PING")
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Receive(); err == nil {
		t.Errorf("reply of a server that was killed: %v", v)
	}
	wantRefused(t, b)
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	b.dial().want("PONG", "PING")
}

func TestCutAllResetsEveryConnection(t *testing.T) {
	t.Parallel()
	modes := []proxy.Mode{
		proxy.Pass, proxy.BlackHole, proxy.DropReplies, proxy.CutAfterRequest, proxy.CutOnce,
		proxy.Delay(time.Hour), proxy.Refuse,
	}
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cs := []*client{b.dial(), b.dial(), b.dial()}
			for _, c := range cs {
				c.want("PONG", "PING")
			}
			b.Set(m)
			b.CutAll()
			for _, c := range cs {
				c.wantReset()
			}
			if s := b.Stats(); s.Open != 0 {
				t.Errorf("%d connections open", s.Open)
			}
			if b.Mode() != m {
				t.Errorf("mode is %q, was %q", b.Mode(), m)
			}
			b.Heal()
			b.dial().want("PONG", "PING")
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no longer of interest")
	cancel(cause)
	if err := b.Wait(ctx, func(proxy.Stats) bool { return false }); !errors.Is(err, cause) {
		t.Errorf("Wait = %v, want %v", err, cause)
	}
}

// Not parallel: it looks at all goroutines of the process.
func TestNoGoroutineIsLeftAfterClose(t *testing.T) {
	modes := []proxy.Mode{
		proxy.Pass, proxy.BlackHole, proxy.DropReplies, proxy.CutAfterRequest, proxy.CutOnce,
		proxy.Delay(time.Hour), proxy.Refuse,
	}
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			b := newBench(t)
			old, cut := b.dial(), b.dial()
			old.want("PONG", "PING")
			cut.want("PONG", "PING")
			b.Set(m)
			old.send("SET", b.key, strings.Repeat("x", 1<<20))
			if m != proxy.Refuse {
				b.dial().send("PING")
				b.wait("connection accepted", func(s proxy.Stats) bool { return s.Accepted == 3 })
			}
			b.Close()
			b.Close()
			if left := goroutines(); left != "" {
				t.Errorf("goroutines left:\n%s", left)
			}
			if c, err := net.Dial("tcp", b.Addr()); err == nil {
				_ = c.Close()
				t.Error("the proxy still listens")
			}
		})
	}
}
