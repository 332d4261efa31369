package redislock

import (
	"net"
	"sync"
	"syscall"
)

// A quick connection reads and writes without telling Go's scheduler. That is told
// of a system call since it may block, and then wakes a thread of its own, sysmon,
// if that sleeps, to look after the goroutines meanwhile. In a process that mostly
// waits it always sleeps: each answer from the server would wake it, which takes as
// long as all that is to be done about the answer. Calls on a socket that does not
// block need no looking after; when there is nothing to read, or no room to write,
// the goroutine sleeps as in any other connection.
//
// That is done only while the processors are wanted for other things. If nothing
// else goes on, the thread that was woken keeps one of them from falling asleep, so
// that the answer is noticed sooner.
//
// What does not work the quick way is done again the usual way, which finds out why.
type quick struct {
	net.Conn
	raw    syscall.RawConn // nil: there is no quick way
	wanted func() bool     // the processors are

	reads struct {
		sync.Mutex
		p  []byte
		n  int
		do func(fd uintptr) (done bool) // reads, later if there is nothing yet
	}
	writes struct {
		sync.Mutex
		p  []byte // what is left
		do func(fd uintptr) (done bool)
	}
}

func newQuick(c net.Conn, wanted func() bool) *quick {
	q := &quick{Conn: c, wanted: wanted}
	if s, ok := c.(syscall.Conn); ok && readsNow {
		q.raw, _ = s.SyscallConn()
	}
	r, w := &q.reads, &q.writes
	r.do = func(fd uintptr) bool {
		var later bool
		r.n, later = readNow(fd, r.p)
		return !later
	}
	w.do = func(fd uintptr) bool {
		n, later := writeNow(fd, w.p)
		w.p = w.p[n:]
		return len(w.p) == 0 || n == 0 && !later
	}
	return q
}

func (q *quick) Read(p []byte) (int, error) {
	if q.raw != nil && q.wanted() {
		r := &q.reads
		r.Lock()
		r.p = p
		err := q.raw.Read(r.do)
		n := r.n
		r.p = nil
		r.Unlock()
		if err == nil && n > 0 {
			return n, nil
		}
	}
	return q.Conn.Read(p)
}

func (q *quick) Write(p []byte) (int, error) {
	if q.raw == nil || !q.wanted() {
		return q.Conn.Write(p)
	}
	w := &q.writes
	w.Lock()
	defer w.Unlock()
	w.p = p
	_ = q.raw.Write(w.do)
	n := len(p) - len(w.p)
	w.p = nil
	if n == len(p) {
		return n, nil
	}
	m, err := q.Conn.Write(p[n:])
	return n + m, err
}
