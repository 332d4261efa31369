package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/web"
)

// A departures board tells which connections a server has ended.
type departures struct {
	mu   sync.Mutex
	gone map[string]bool // by the client's address
}

// watch has a server's connections hold little on their way, and be told of.
func (d *departures) watch(s *http.Server) {
	d.gone = make(map[string]bool)
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if state == http.StateClosed {
			d.gone[c.RemoteAddr().String()] = true
		}
	}
}

func (d *departures) has(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone[c.LocalAddr().String()]
}

// TestSlowReaders of what goes on for ever are left, and those who read aren't.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	const each = 3
	var params, given []string
	for i := range 20 { // each change of a run is an event of 20 KiB
		params = append(params, fmt.Sprintf("p%d: 'x+'", i))
		given = append(given, fmt.Sprintf(`"p%d": %q`, i, strings.Repeat("x", 1000)))
	}
	var left departures
	s := newSiteOver(t, "sqlite://"+t.TempDir()+"/locks.db", "  big: { command: 'true', params: { "+strings.Join(params, ", ")+" } }\n"+
		"  loud: { command: [sh, -c, 'head -c 1000000 /dev/zero; sleep 600'], grace: 50ms, history: { log_bytes: 1MiB } }\n",
		web.Options{Users: web.Open(), Patience: 4 * time.Second}, left.watch)
	loud := decode[web.Run](t, s.do("POST", "/run/loud", ""))
	until(t, "it was loud", func() bool { return len(s.do("GET", "/api/v1/runs/"+loud.ID+"/log", "").text) == 1_000_000 })

	stream := func(path string) net.Conn {
		c, err := net.Dial("tcp", s.srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var slow []net.Conn
	for range each {
		slow = append(slow, stream("/events"), stream("/api/v1/runs/"+loud.ID+"/log?follow=true"))
	}
	fair := stream("/events")
	news := make(chan struct{}, 1)
	go func() { // ends with the connection
		for r := bufio.NewReader(fair); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "event: run") {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}
	}()
	until(t, "all who don't read are left", func() bool {
		s.do("POST", "/run/big", `{"params": {`+strings.Join(given, ", ")+`}}`, "Prefer", "wait=30")
		for _, c := range slow {
			if !left.has(c) {
				return false
			}
		}
		return true
	})
	if left.has(fair) {
		t.Error("who reads was left too")
	}
	select { // what was told before is heard, and what is told now
	case <-news:
	default:
	}
	s.do("POST", "/run/big", `{"params": {`+strings.Join(given, ", ")+`}}`, "Prefer", "wait=30")
	select {
	case <-news:
	case <-time.After(5 * time.Minute):
		t.Error("who reads hears nothing any more")
	}
}

// TestStreamsAreBounded: one more than there is room for is told to come back, and
// may when another has gone.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), jobs, web.Open())
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	open := func(ctx context.Context) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.srv.URL+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
			t.Error("it isn't told when to come back")
		}
		return resp.StatusCode
	}
	n := 0
	for ; n < 1000 && open(ctx) == http.StatusOK; n++ {
	}
	if n < 10 || n == 1000 {
		t.Errorf("%d streams are open", n)
	}
	leave()
	until(t, "there is room again", func() bool { return open(t.Context()) == http.StatusOK })
}
