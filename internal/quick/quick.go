// Package quick has connections that spare the processor.
package quick

import (
	"net"
	"sync"
	"syscall"
)

// A Conn reads and writes without telling Go's scheduler. That is told of a system
// call since it may block, and then wakes a thread of its own, sysmon, if that
// sleeps, to look after the goroutines meanwhile. In a process that mostly waits it
// always sleeps: each answer from the server would wake it, which takes as long as
// all that is to be done about the answer. Calls that do not block, whatever mode the
// socket is in, need no looking after; when there is nothing to read, or no room to
// write, the goroutine sleeps as in any other connection.
//
// That is done only while the processors are wanted for other things. If nothing
// else goes on, the thread that was woken keeps one of them from falling asleep, so
// that the answer is noticed sooner.
//
// What does not work the quick way is done again the usual way, which finds out why.
type Conn struct {
	net.Conn
	raw    syscall.RawConn // nil: there is no quick way
	wanted func() bool     // the processors are; nil: always

	reads struct {
		sync.Mutex
		p            []byte
		n            int
		later        bool
		wait, glance func(fd uintptr) (done bool)
	}
	writes struct {
		sync.Mutex
		p    []byte // what is left
		wait func(fd uintptr) (done bool)
	}
}

// New returns a quick connection on c. It is quick while wanted says that the
// processors are, which it is asked at each call; nil: always. c can be used beside
// it.
func New(c net.Conn, wanted func() bool) *Conn {
	q := &Conn{Conn: c, wanted: wanted}
	if s, ok := c.(syscall.Conn); ok && readsNow {
		q.raw, _ = s.SyscallConn()
	}
	r, w := &q.reads, &q.writes
	r.glance = func(fd uintptr) bool {
		r.n, r.later = readNow(fd, r.p)
		return true
	}
	r.wait = func(fd uintptr) bool { return r.glance(fd) && !r.later }
	w.wait = func(fd uintptr) bool {
		n, later := writeNow(fd, w.p)
		w.p = w.p[n:]
		return len(w.p) == 0 || n == 0 && !later
	}
	return q
}

// Looks tells whether Look can find anything.
func (q *Conn) Looks() bool { return q.raw != nil }

// Look reads what is there, and does not wait; 0: nothing, or the connection's end,
// which the next Read tells.
func (q *Conn) Look(p []byte) (n int, err error) { return q.read(p, q.reads.glance) }

func (q *Conn) isQuick() bool { return q.raw != nil && (q.wanted == nil || q.wanted()) }

// Read is that of any connection.
func (q *Conn) Read(p []byte) (int, error) {
	if q.isQuick() {
		if n, err := q.read(p, q.reads.wait); err == nil && n > 0 {
			return n, nil
		}
	}
	return q.Conn.Read(p)
}

func (q *Conn) read(p []byte, how func(fd uintptr) bool) (int, error) {
	r := &q.reads
	r.Lock()
	defer r.Unlock()
	r.p, r.n = p, 0
	err := q.raw.Read(how)
	r.p = nil
	return r.n, err
}

// Write is that of any connection.
func (q *Conn) Write(p []byte) (int, error) {
	if !q.isQuick() {
		return q.Conn.Write(p)
	}
	w := &q.writes
	w.Lock()
	defer w.Unlock()
	w.p = p
	_ = q.raw.Write(w.wait)
	n := len(p) - len(w.p)
	w.p = nil
	if n == len(p) {
		return n, nil
	}
	m, err := q.Conn.Write(p[n:])
	return n + m, err
}
