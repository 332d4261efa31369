package proxy_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// long bounds what a broken run may take; nothing is measured by it.
const long = time.Minute

// bench is a proxy before the shared Redis server, and a key of this test's own.
type bench struct {
	*proxy.Proxy
	t   *testing.T
	r   *servers.RedisServer
	key string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	r := servers.SharedRedis(t)
	b := &bench{t: t, r: r, key: t.Name(), Proxy: proxy.New(t, r.Addr())}
	b.direct("DEL", b.key) // of an earlier run of this test
	return b
}

// direct asks the server itself.
func (b *bench) direct(args ...any) any {
	b.t.Helper()
	v, err := b.r.Do(args...)
	if err != nil {
		b.t.Fatalf("%v on a direct connection: %v", args, err)
	}
	return v
}

// dial connects through the proxy.
func (b *bench) dial() *client {
	b.t.Helper()
	c, err := servers.DialRESP(b.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(long)); err != nil {
		b.t.Fatal(err)
	}
	return &client{RESP: c, t: b.t}
}

// wait waits for what the proxy counts.
func (b *bench) wait(what string, condition func(proxy.Stats) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), long)
	defer cancel()
	if err := b.Wait(ctx, condition); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

func (b *bench) idle() {
	b.t.Helper()
	b.wait("no connection open", func(s proxy.Stats) bool { return s.Open == 0 })
}

type client struct {
	*servers.RESP
	t *testing.T
}

func (c *client) want(reply any, args ...any) {
	c.t.Helper()
	if v, err := c.Do(args...); err != nil || v != reply {
		c.t.Fatalf("%v = %v, %v, want %v", args, v, err, reply)
	}
}

func (c *client) send(args ...any) {
	c.t.Helper()
	if err := c.Send(args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) wantReply(reply any) {
	c.t.Helper()
	if v, err := c.Receive(); err != nil || v != reply {
		c.t.Fatalf("reply = %v, %v, want %v", v, err, reply)
	}
}

// wantReset fails the test unless the connection was reset, which a client
// learns from a read.
func (c *client) wantReset() {
	c.t.Helper()
	if v, err := c.Receive(); !errors.Is(err, syscall.ECONNRESET) {
		c.t.Fatalf("reply = %v, %v, want a reset connection", v, err)
	}
}

// raw is a server that does what a test makes it do.
func raw(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

func accept(t *testing.T, l *net.TCPListener) net.Conn {
	t.Helper()
	_ = l.SetDeadline(time.Now().Add(long))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(long))
	return c
}

func must(t *testing.T, c *servers.RESP, args ...any) any {
	t.Helper()
	v, err := c.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// wantRefused dials the proxy and fails the test unless the connection is reset.
func wantRefused(t *testing.T, b *bench) {
	t.Helper()
	c, err := net.Dial("tcp", b.Addr())
	if err == nil {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(long))
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("new connection: %v, want a refusal", err)
	}
}

// goroutines returns the stacks that run code of the proxy.
func goroutines() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var ours []string
	for s := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(s, "/drivertest/proxy.") {
			ours = append(ours, s)
		}
	}
	return strings.Join(ours, "\n\n")
}
