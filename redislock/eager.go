package redislock

import (
	"runtime"
	"time"

	"github.com/dibslock/dibs/internal/quick"
)

const (
	eagerFor = 400 * time.Microsecond // how long an eager read looks for what is about to come
	maxIdly  = 64                     // and how many reads are not eager, at the most, after that was in vain
)

// An eager connection spares the goroutine that reads it some sleep. While many
// goroutines want locks, the next answer is at most some hundred microseconds away.
// Putting the reader's thread to sleep until then, and waking it, takes a good part
// of that, and worse: the kernel tends to wake it on the server's processor, where it
// runs instead of the server. So a read looks for a while, and lets other goroutines
// run in between. That is done only while it pays: a server that is slow, or far
// away, is seldom looked for, and one call alone never.
type eager struct {
	*quick.Conn
	expect func() bool // several calls are under way; nil: it never looks

	// The reader's own.
	look func(p []byte) (int, error) // reads what is there
	idly int                         // so many reads from here on are not eager
	vain int                         // so many after the next that is in vain
}

// newEager makes c eager. On a single processor nobody can answer while another
// looks for it.
func newEager(c *quick.Conn, expect func() bool) *eager {
	e := &eager{Conn: c, look: c.Look, vain: 1}
	if c.Looks() && runtime.GOMAXPROCS(0) > 1 {
		e.expect = expect
	}
	return e
}

// Read is called by one goroutine at a time.
func (e *eager) Read(p []byte) (int, error) {
	switch {
	case e.expect == nil || !e.expect():
	case e.idly > 0:
		e.idly--
	default:
		if n := e.soon(p); n > 0 {
			e.vain = 1
			return n, nil
		}
		e.idly, e.vain = e.vain, min(2*e.vain, maxIdly)
	}
	return e.Conn.Read(p)
}

// soon reads what comes soon; 0: nothing did, or the connection has ended.
func (e *eager) soon(p []byte) int {
	for began := time.Now(); ; {
		if n, err := e.look(p); err != nil || n > 0 {
			return n
		}
		if time.Since(began) > eagerFor || !e.expect() {
			return 0
		}
		runtime.Gosched()
	}
}
