package proxy

import (
	"errors"
	"io"
	"net"
	"time"
)

const (
	chunkSize = 32 << 10
	chunks    = 256 // that one direction holds; then the sender's TCP holds the rest
)

// pipe is one direction of a link: a reader that notes when bytes came, and a
// writer that judges them when their turn comes.
type pipe struct {
	link     *link
	way      direction
	from, to *net.TCPConn
	queue    chan chunk
}

// chunk is some bytes, or the end of the stream.
type chunk struct {
	bytes []byte
	came  time.Time
	err   error // with no bytes: io.EOF, or why reading failed
}

func newPipe(l *link, way direction, from, to *net.TCPConn) *pipe {
	return &pipe{link: l, way: way, from: from, to: to, queue: make(chan chunk, chunks)}
}

// read queues what comes until the stream or the link ends.
func (p *pipe) read() {
	buf := make([]byte, chunkSize)
	for {
		n, err := p.from.Read(buf)
		if n > 0 {
			p.link.proxy.take(p.link, n)
			if !p.put(chunk{bytes: append([]byte(nil), buf[:n]...), came: time.Now()}) {
				return
			}
		}
		if err != nil {
			p.put(chunk{err: err, came: time.Now()})
			return
		}
	}
}

func (p *pipe) put(c chunk) bool {
	select {
	case p.queue <- c:
		return true
	case <-p.link.ctx.Done():
		return false
	}
}

// write passes on what was queued, as the mode says, until the stream or the
// link ends.
func (p *pipe) write() {
	for {
		select {
		case c := <-p.queue:
			if !p.pass(c) {
				return
			}
		case <-p.link.ctx.Done():
			return
		}
	}
}

// pass does to a chunk what the proxy decides, and reports whether the stream
// goes on.
func (p *pipe) pass(c chunk) bool {
	switch p.decide(c) {
	case drop:
		return true
	case cut:
		abort(p.link.client) // which ends the requests, see fail
		p.drain()
		p.link.reset()
		return false
	case hold: // the link has ended
		return false
	}
	if c.err != nil {
		return p.finish(c.err)
	}
	if _, err := p.to.Write(c.bytes); err != nil {
		p.fail()
		return false
	}
	return true
}

// decide waits until the chunk's fate is known; it returns hold if the link
// ends first.
func (p *pipe) decide(c chunk) verdict {
	for {
		v, until, changed := p.link.proxy.judge(p.link, p.way, len(c.bytes), c.came)
		if v != hold {
			return v
		}
		var due <-chan time.Time // nil: never
		if !until.IsZero() {
			due = time.After(time.Until(until))
		}
		select {
		case <-due:
		case <-changed:
		case <-p.link.ctx.Done():
			return hold
		}
	}
}

// finish passes the end of a stream on: a FIN as a FIN, anything else as a RST.
func (p *pipe) finish(err error) bool {
	if !errors.Is(err, io.EOF) || p.to.CloseWrite() != nil {
		p.fail()
	}
	return false
}

// fail resets the link because a direction failed. When the client's side was
// cut it is the requests that fail, and theirs is an orderly end: a RST could
// overtake a request that the server has yet to read. As the end has its place
// in the queue, all requests that came before it are written by now.
func (p *pipe) fail() {
	if p.way == request && p.link.wasCut() {
		_ = p.to.CloseWrite()
		return
	}
	p.link.reset()
}

// drain waits for the server to end a connection that was cut, so that it has
// read all of it. The reader queues what still comes; the end of the link, by
// Close or CutAll, ends the wait.
func (p *pipe) drain() {
	for {
		select {
		case c := <-p.queue:
			if c.err != nil {
				return
			}
		case <-p.link.ctx.Done():
			return
		}
	}
}
