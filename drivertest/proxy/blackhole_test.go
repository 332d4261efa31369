package proxy_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/drivertest/proxy"
)

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
