package pglock

import (
	"net"
	"sync"
	"time"
)

// A watchdog closes a connection whose server is silent for too long. It has one
// timer, which is left to run: to make and to stop one for every round trip costs
// more than the rest of it.
type watchdog struct {
	mu    sync.Mutex // guards all below
	timer *time.Timer
	conn  net.Conn  // that is waited for; nil: none is
	late  time.Time // when it is to be closed
	next  time.Time // when the timer looks
}

// begin watches over conn for d, until end.
func (w *watchdog) begin(conn net.Conn, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn, w.late = conn, time.Now().Add(d)
	switch {
	case w.timer == nil:
		w.timer, w.next = time.AfterFunc(d, w.look), w.late
	case w.late.Before(w.next):
		w.timer.Reset(d)
		w.next = w.late
	}
}

func (w *watchdog) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = nil
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = nil
	if w.timer != nil {
		w.timer.Stop()
	}
}

// look runs when the time of some round trip is over, perhaps one long past.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch left := time.Until(w.late); {
	case w.conn == nil:
		w.timer = nil
	case left > 0:
		w.timer.Reset(left)
		w.next = w.late
	default:
		_ = w.conn.Close()
		w.conn, w.timer = nil, nil
	}
}
