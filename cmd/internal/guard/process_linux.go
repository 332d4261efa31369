package guard

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/internal/boottime"
)

// ErrUnguarded: the guardian ended, and the command was killed for it.
var ErrUnguarded = errors.New("the guardian was killed, and the command with it")

// A Process is a command under a guardian. Its methods may be called from any
// goroutine, also after its end. Close ends the guardian.
type Process struct {
	line     *line
	now      boottime.Source
	pid      int
	guardian int

	exited, gone chan struct{}
	ended        chan struct{} // the guardian has
	stops        chan syscall.Signal
	relays       chan os.Signal

	code int   // read after gone
	err  error // read after gone

	mu       sync.Mutex // guards what follows
	over     bool       // nothing is left, or the numbers may be others' by now
	lost     bool       // the guardian has ended
	whole    bool
	sweeping bool
	overdue  bool
}

// Pid returns the command's id, which is its group's too.
func (p *Process) Pid() int { return p.pid }

// Exited is closed when the command itself has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone is closed when nothing is left of the group; after Whole, when nothing is
// left of the descendants.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Stopped tells by which signal the command was stopped.
func (p *Process) Stopped() <-chan syscall.Signal { return p.stops }

// Relayed has the signals that were sent to the guardian, by the command or by one
// that meant all: they are dibs's.
func (p *Process) Relayed() <-chan os.Signal { return p.relays }

// Code returns how the command ended: its own code, or 128+n after signal n. Call
// it when Gone is closed. The error says that this cannot be known.
func (p *Process) Code() (int, error) { return p.code, p.err }

// Overdue tells whether the guardian stopped the command at its Limit.
func (p *Process) Overdue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.overdue
}

// Limit tells the guardian a new limit.
func (p *Process) Limit(l Limit) { p.tell(order{Limit: p.deadline(l)}) }

func (p *Process) deadline(l Limit) *deadline {
	if l.Kill == 0 {
		return &deadline{}
	}
	now := p.now()
	return &deadline{Term: now + l.Term, Kill: max(now+l.Kill, 1)}
}

// tell tells the guardian. One that is stopped hears of it later.
func (p *Process) tell(o order) { p.line.send(o) }

// Signal sends sig to the whole group. A group that has ended is no error.
func (p *Process) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.lost {
		return nil
	}
	return killGroup(p.pid, number)
}

// Whole makes all descendants count from now on, also those that left the group:
// for Terminate, Kill, and Gone.
func (p *Process) Whole() {
	p.mu.Lock()
	p.whole = true
	p.mu.Unlock()
	p.tell(order{Whole: true})
}

// Terminate asks the command to end.
func (p *Process) Terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.lost {
		return nil
	}
	return terminate(p.pid, p.guardian, p.whole)
}

// Kill ends the command.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.lost {
		return nil
	}
	_ = unix.Kill(p.guardian, unix.SIGCONT) // somebody may have stopped it
	err := killGroup(p.pid, unix.SIGKILL)
	if p.whole && !p.sweeping {
		p.sweeping = true
		go p.sweep() // ends when gone is closed
	}
	return err
}

// sweep kills all that is below the guardian until nothing is left.
func (p *Process) sweep() {
	for {
		if _, err := killBelow(p.guardian, p.pid, nil); err != nil {
			return // without /proc the group alone can be reached
		}
		select {
		case <-p.gone:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// listen follows the command to its end, and the guardian to its own.
func (p *Process) listen() {
	defer close(p.ended)
	for {
		var r report
		if err := p.line.dec.Decode(&r); err != nil {
			p.unguarded()
			return
		}
		p.take(r)
	}
}

func (p *Process) take(r report) {
	switch {
	case r.Stopped != 0:
		select {
		case <-p.stops: // the newest counts
		default:
		}
		p.stops <- syscall.Signal(r.Stopped)
	case r.Relayed != 0:
		select {
		case p.relays <- syscall.Signal(r.Relayed):
		default: // nobody sends so many
		}
	case r.Overdue:
		p.mu.Lock()
		p.overdue = true
		p.mu.Unlock()
	case r.Exited:
		p.code = r.Code
		if r.Gone {
			p.finish(nil) // first, so that nobody looks for what is left
		}
		close(p.exited)
	case r.Gone:
		p.finish(nil)
	}
}

// unguarded kills what the end of the guardian has left to this process: all that
// is below it and below no other of its guardians. After the end of the command there is
// nothing.
func (p *Process) unguarded() {
	p.mu.Lock()
	p.lost = true
	over := p.over
	p.mu.Unlock()
	guardians.Delete(p.guardian)
	if over {
		return
	}
	_ = killGroup(p.pid, unix.SIGKILL)
	// Twice nothing: one look can miss a process.
	for empty := 0; empty < 2; {
		n, err := killBelow(os.Getpid(), p.guardian, others)
		if err != nil {
			break // without /proc the group is all that can be reached
		}
		if empty++; n > 0 {
			empty = 0
			time.Sleep(2 * time.Millisecond)
		}
	}
	select {
	case <-p.exited:
	default:
		close(p.exited)
	}
	p.finish(ErrUnguarded)
}

// guardians are those that this process has started and that haven't ended. What
// is below one of them is its own to stop.
var guardians sync.Map

func others(p proc) bool {
	_, ok := guardians.Load(p.pid)
	return ok
}

func (p *Process) finish(err error) {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.err = err
	close(p.gone)
}

// Close lets the guardian go, and waits for it. Call it when Gone is closed.
func (p *Process) Close() {
	p.tell(order{Bye: true})
	select {
	case <-p.ended:
	case <-time.After(time.Second): // it is stopped, and has nothing left to do
		_ = unix.Kill(p.guardian, unix.SIGKILL)
		select {
		case <-p.ended:
		case <-time.After(time.Second): // another process has inherited its end of the line
		}
	}
	p.line.close() // which ends listen, whoever has the other end
	<-p.ended
}

// stillborn ends a guardian without a command.
func (p *Process) stillborn(err error) error {
	p.line.close() // it reads the end
	guardians.Delete(p.guardian)
	return err
}
