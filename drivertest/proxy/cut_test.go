package proxy_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dibslock/dibs/drivertest/proxy"
)

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
