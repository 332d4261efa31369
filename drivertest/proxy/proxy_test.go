package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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

func TestBlackHoleHoldsUntilHealed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := b.dial()
	old.want("PONG", "PING")
	asked := b.Stats().Requests
	blocked := b.dial()
	blocked.send("BLPOP", b.key+" list", 0)
	b.wait("request forwarded", func(s proxy.Stats) bool { return s.Requests > asked })

	before := b.Stats()
	b.Set(proxy.BlackHole)
	// From client to server, on a connection that existed and on a new one.
	old.send("SET", b.key, "v")
	b.wait("request held", func(s proxy.Stats) bool { return s.Held > 0 })
	young := b.dial()
	young.send("PING")
	b.wait("connection accepted", func(s proxy.Stats) bool { return s.Accepted == before.Accepted+1 })
	if v := b.direct("GET", b.key); v != nil {
		t.Errorf("server has %v through a black hole", v)
	}
	// From server to client.
	held := b.Stats().Held
	b.direct("RPUSH", b.key+" list", "x")
	b.wait("reply held", func(s proxy.Stats) bool { return s.Held > held })
	if s := b.Stats(); s.Requests != before.Requests || s.Replies != before.Replies || s.Dropped != 0 {
		t.Errorf("stats in the black hole = %+v, before it %+v", s, before)
	}

	b.Heal()
	old.wantReply("OK")
	young.wantReply("PONG")
	if v, err := blocked.Receive(); err != nil || fmt.Sprint(v) != fmt.Sprint([]any{b.key + " list", "x"}) {
		t.Errorf("BLPOP = %v, %v", v, err)
	}
	if v := b.direct("GET", b.key); v != "v" {
		t.Errorf("server has %v after the partition healed", v)
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

func TestBlackHoleHidesNewConnections(t *testing.T) {
	t.Parallel()
	server := raw(t)
	b := &bench{t: t, Proxy: proxy.New(t, server.Addr().String())}
	b.Set(proxy.BlackHole)
	b.dial()
	_ = server.SetDeadline(time.Now().Add(100 * time.Millisecond)) // too short would only be weaker
	if _, err := server.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the server sees a new connection through a black hole: %v", err)
	}
	b.Heal()
	accept(t, server)
}

func TestBlackHoleHidesTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.dial()
	id := fmt.Sprintf("id=%v ", must(t, c.RESP, "CLIENT", "ID"))
	b.Set(proxy.BlackHole)
	c.send("PING")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b.wait("request held", func(s proxy.Stats) bool { return s.Held > 0 })
	if list := b.direct("CLIENT", "LIST").(string); !strings.Contains(list, id) {
		t.Error("the server knows that the client has gone")
	}
	b.Heal()
	b.idle()
}

func must(t *testing.T, c *servers.RESP, args ...any) any {
	t.Helper()
	v, err := c.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDropRepliesAppliesRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.dial()
	c.want("PONG", "PING")
	b.Set(proxy.DropReplies)
	c.send("INCR", b.key)
	b.wait("reply dropped", func(s proxy.Stats) bool { return s.Dropped == int64(len(":1\r\n")) })
	c.send("INCR", b.key)
	b.wait("reply dropped", func(s proxy.Stats) bool { return s.Dropped == int64(2*len(":1\r\n")) })
	if v := b.direct("GET", b.key); v != "2" {
		t.Errorf("server has %v, want 2", v)
	}
	fresh := b.dial()
	b.wait("connection open", func(s proxy.Stats) bool { return s.Open == 2 })

	b.Heal()
	c.wantReset() // not the reply to a later request
	fresh.want("PONG", "PING")
}

func TestCutAfterRequestLosesTheReplyAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		mode proxy.Mode
		cut  bool
	}{
		{"control", proxy.Pass, false},
		{"cut", proxy.CutAfterRequest, true},
		{"cut once", proxy.CutOnce, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			conn := b.dial()
			conn.want("PONG", "PING")
			b.Set(c.mode)
			conn.send("SET", b.key, "v")
			if c.cut {
				conn.wantReset()
			} else {
				conn.wantReply("OK")
			}
			if v := b.direct("GET", b.key); v != "v" {
				t.Errorf("server has %v, want v: the request wasn't applied", v)
			}
			want := proxy.Stats{Accepted: 1, Open: 1, Requests: b.Stats().Requests, Replies: int64(len("+PONG\r\n+OK\r\n"))}
			if c.cut {
				b.idle()
				want.Open, want.Cuts = 0, 1
				want.Replies, want.Dropped = int64(len("+PONG\r\n")), int64(len("+OK\r\n"))
			}
			if s := b.Stats(); s != want {
				t.Errorf("stats = %+v, want %+v", s, want)
			}
		})
	}
}

func TestCutAfterRequestStrikesEachConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Set(proxy.CutAfterRequest)
	for i := range 3 {
		c := b.dial()
		c.send("INCR", b.key)
		c.wantReset()
		if v := b.direct("GET", b.key); v != fmt.Sprint(i+1) {
			t.Fatalf("server has %v after %d cut requests", v, i+1)
		}
	}
	b.Heal()
	b.dial().want(int64(4), "INCR", b.key)
	if s := b.Stats(); s.Cuts != 3 {
		t.Errorf("%d cuts, want 3", s.Cuts)
	}
}

func TestCutOnceStrikesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, other := b.dial(), b.dial()
	b.Set(proxy.CutOnce)
	first.send("INCR", b.key)
	first.wantReset()
	if m := b.Mode(); m != proxy.Pass {
		t.Errorf("mode is %q after the cut, want %q", m, proxy.Pass)
	}
	other.want(int64(2), "INCR", b.key)
	b.dial().want(int64(3), "INCR", b.key)
}

// The reply to a request from before the fault isn't the one to lose.
func TestCutAfterRequestSparesEarlierReplies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.dial()
	c.send("BLPOP", b.key, 0)
	b.wait("request forwarded", func(s proxy.Stats) bool { return s.Requests > 0 })
	b.Set(proxy.CutAfterRequest)
	b.direct("RPUSH", b.key, "x")
	if v, err := c.Receive(); err != nil || fmt.Sprint(v) != fmt.Sprint([]any{b.key, "x"}) {
		t.Errorf("BLPOP = %v, %v", v, err)
	}
	c.send("RPUSH", b.key, "y")
	c.wantReset()
	if v := b.direct("LLEN", b.key); v != int64(1) {
		t.Errorf("list has %v elements, want 1", v)
	}
}

// A server that speaks before it has read must still get the request.
func TestCutAfterRequestNeverLosesTheRequest(t *testing.T) {
	t.Parallel()
	server := raw(t)
	b := &bench{t: t, Proxy: proxy.New(t, server.Addr().String())}
	b.Set(proxy.CutAfterRequest)
	c := b.dial()
	s := accept(t, server)
	request := strings.Repeat("x", 64<<10)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	b.wait("request taken", func(s proxy.Stats) bool { return s.Requests+s.Held == int64(len(request)) && s.Requests > 0 })
	if _, err := io.WriteString(s, "!"); err != nil {
		t.Fatal(err)
	}
	c.wantReset()
	got, err := io.ReadAll(s)
	if err != nil || len(got) != len(request) {
		t.Errorf("server read %d of %d bytes, then %v, want all and an orderly end", len(got), len(request), err)
	}
}

func TestDelayHoldsEachDirection(t *testing.T) {
	t.Parallel()
	const d = 100 * time.Millisecond
	b := newBench(t)
	c := b.dial()
	c.want("PONG", "PING")
	b.Set(proxy.Delay(d))
	asked := time.Now()
	c.want("OK", "SET", b.key, "v")
	if took := time.Since(asked); took < 2*d {
		t.Errorf("a round trip took %s, less than the delays of %s", took, 2*d)
	}
	b.Heal()
	c.want("v", "GET", b.key)
}

// Many requests under way together wait as long as one does.
func TestDelayDoesNotAddUp(t *testing.T) {
	t.Parallel()
	const n, d = 200, time.Second
	b := newBench(t)
	c := b.dial()
	b.Set(proxy.Delay(d))
	for range n {
		held := b.Stats().Held
		c.send("INCR", b.key)
		b.wait("request taken", func(s proxy.Stats) bool { return s.Held != held }) // so it's a chunk of its own
	}
	for i := range n {
		c.wantReply(int64(i + 1)) // within the deadline of the connection: less than n*d
	}
}

func TestHealFreesWhatIsDelayed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.dial()
	b.Set(proxy.Delay(time.Hour))
	c.send("SET", b.key, "v")
	b.wait("request taken", func(s proxy.Stats) bool { return s.Held > 0 })
	if v := b.direct("GET", b.key); v != nil {
		t.Errorf("server has %v an hour early", v)
	}
	b.Heal()
	c.wantReply("OK")
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
