package guard

import (
	"encoding/gob"
	"os"
	"syscall"
	"time"
)

// name is what the guardian is called, in place of the program's name.
const name = "dibs: guardian"

// fdsVar tells the guardian its descriptors: the socket, and the life file or -1.
const fdsVar = "DIBS_GUARDIAN"

// An order is what dibs tells the guardian.
type order struct {
	Start *command  // the first order, and no other
	Limit *deadline // from now on
	Whole bool      // the command is to be stopped with all its descendants
	Bye   bool      // all is over; the guardian may go
}

type command struct {
	Path       string
	Argv, Env  []string
	Foreground bool
}

// A deadline is by the boot-time clock, which both processes read.
type deadline struct {
	Term, Kill time.Duration // Kill 0: none
}

// A report is what the guardian tells dibs.
type report struct {
	Pid     int           // it has been started
	Errno   syscall.Errno // or not
	Stopped int           // by this signal
	Relayed int           // this signal was sent to the guardian
	Overdue bool          // the deadline has passed, and the guardian stops the command
	Exited  bool          // the command itself has ended
	Code    int           // with Exited
	Gone    bool          // nothing is left
}

// A line is one end of the socket.
type line struct {
	f    *os.File
	dec  *gob.Decoder
	out  chan any
	quit chan struct{} // closed by close
}

// backlog is how many messages may wait for an other end that is stopped, beside
// those that the socket holds.
const backlog = 256

func newLine(f *os.File) *line {
	l := &line{f: f, dec: gob.NewDecoder(f), out: make(chan any, backlog), quit: make(chan struct{})}
	go l.write() // ends in close, or with the process
	return l
}

// send is for order and report. It never waits. That the other end has gone is
// noticed by who reads.
func (l *line) send(m any) {
	select {
	case l.out <- m:
	default: // the other end has been stopped for days
	}
}

func (l *line) write() {
	enc := gob.NewEncoder(l.f)
	for {
		select {
		case m := <-l.out:
			if enc.Encode(m) != nil {
				return // who reads notices it too
			}
		case <-l.quit:
			return
		}
	}
}

// close ends both directions. It may be called once.
func (l *line) close() {
	close(l.quit)
	_ = l.f.Close()
}
