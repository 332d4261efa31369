package web_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/web"
)

// hurried has a server wait for its clients for a moment only. It is long enough
// for those that aren't slow on a machine that is.
func hurried(s *http.Server) {
	s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout, s.WriteTimeout = 2*time.Second, 2*time.Second, 2*time.Second, 10*time.Second
}

// TestTheServerHasLimitsInTime for each thing that a client can be slow in.
func TestTheServerHasLimitsInTime(t *testing.T) {
	t.Parallel()
	h := newSite(t, t.TempDir(), jobs, web.Open()).srv.Config
	for name, d := range map[string]time.Duration{
		"header": h.ReadHeaderTimeout, "request": h.ReadTimeout, "answer": h.WriteTimeout, "idle": h.IdleTimeout,
	} {
		if d <= 0 || d > 2*time.Minute {
			t.Errorf("%s: %v", name, d)
		}
	}
	if h.WriteTimeout <= time.Minute {
		t.Errorf("an answer has %v, which is less than Prefer: wait may be", h.WriteTimeout)
	}
}

// TestSlowClients are left by the server, and others are served meanwhile.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	const each = 4
	s := newSite(t, t.TempDir(), jobs, web.Open(), hurried)
	body := "POST /run/slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
	var ended sync.WaitGroup
	for name, speak := range map[string]func(*testing.T, net.Conn) error{
		"header byte by byte": func(_ *testing.T, c net.Conn) error { return drip(c, "GET /healthz HTTP/1.1\r\nX-Slow: ") },
		"body byte by byte":   func(_ *testing.T, c net.Conn) error { return drip(c, body) },
		"says nothing":        func(_ *testing.T, c net.Conn) error { return heard(c) },
		"stops in its body": func(t *testing.T, c net.Conn) error {
			if _, err := io.WriteString(c, body); err != nil {
				t.Error(err)
			}
			return heard(c)
		},
		"idle after an answer": func(t *testing.T, c net.Conn) error {
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
				t.Error(err)
			}
			return heard(c)
		},
		"reads nothing": func(_ *testing.T, c net.Conn) error {
			for { // until the answers fill what lies between, and the server gives up
				if _, err := io.WriteString(c, "GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
					return err
				}
			}
		},
	} {
		for range each {
			conn, err := net.Dial("tcp", s.srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
			ended.Go(func() {
				defer conn.Close()
				if err := speak(t, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: the server still has it", name)
				}
			})
		}
	}
	all := make(chan struct{})
	go func() { // ends when the server has left them all
		ended.Wait()
		close(all)
	}()
	for served := 0; ; served++ {
		if a := s.do("POST", "/run/quick", "", "Connection", "close"); a.StatusCode/100 != 2 && a.StatusCode != http.StatusConflict {
			t.Errorf("%d %s", a.StatusCode, a.text)
		}
		select {
		case <-all:
			if served == 0 {
				t.Error("nobody else was served meanwhile")
			}
			if a := s.do("GET", "/api/v1/runs?job=slow", "", "Connection", "close"); strings.Contains(a.text, `"job":"slow"`) {
				t.Errorf("half a request started a run: %s", a.text)
			}
			return
		default:
		}
	}
}

// TestAWaitOutlivesTheLimitsOfReading: a client that has said all it has to say may
// wait for its answer, with a body and without one.
func TestAWaitOutlivesTheLimitsOfReading(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "  'long/{id}': { command: [sleep, '6'] }\n", web.Open(), func(s *http.Server) { s.ReadTimeout = 4 * time.Second })
	var done sync.WaitGroup
	for id, body := range map[string]string{"none": "", "some": "{}"} {
		done.Go(func() {
			if a := s.do("POST", "/run/long/"+id, body, "Prefer", "wait=60"); a.StatusCode != http.StatusOK {
				t.Errorf("with the body %q: %d %s", body, a.StatusCode, a.text)
			}
		})
	}
	done.Wait()
}

// drip says start, and then one byte after the other until the connection ends.
func drip(c net.Conn, start string) error {
	if _, err := io.WriteString(c, start); err != nil {
		return err
	}
	for {
		if _, err := io.WriteString(c, "x"); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// heard reads until the connection ends.
func heard(c net.Conn) error {
	_, err := io.Copy(io.Discard, bufio.NewReader(c))
	return err
}
