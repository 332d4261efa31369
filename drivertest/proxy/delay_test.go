package proxy_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/drivertest/proxy"
)

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
