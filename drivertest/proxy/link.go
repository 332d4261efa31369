package proxy

import (
	"context"
	"net"
	"sync"
)

// link is one connection of a client through the proxy to the server.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	ctx    context.Context // ends with the link: it is a connection's life
	end    context.CancelFunc
	done   chan struct{} // closed when its goroutines have ended

	// guarded by proxy.mu
	server *net.TCPConn // nil until it is dialled
	asked  int          // the epoch in which the latest request was forwarded
	holed  bool         // a reply is missing from the stream
	isCut  bool         // the client's side is reset, the server's ends in order
	held   int64        // bytes in the proxy's hands
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	l := &link{proxy: p, client: client, done: make(chan struct{}), asked: -1}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// run forwards both directions until both have ended or the link is reset.
func (l *link) run() {
	defer close(l.done)
	defer l.proxy.forget(l)
	defer l.end()
	if !l.dial() {
		l.reset()
		return
	}
	var pipes sync.WaitGroup
	requests := newPipe(l, request, l.client, l.server)
	replies := newPipe(l, reply, l.server, l.client)
	for _, do := range []func(){requests.read, requests.write, replies.read, replies.write} {
		pipes.Go(do) // ends with its stream, or when reset closes the sockets
	}
	pipes.Wait()
	_ = l.client.Close()
	_ = l.server.Close()
}

// dial connects to the server as soon as the mode lets a connection through,
// and reports whether there is one.
func (l *link) dial() bool {
	if !l.proxy.passage(l) {
		return false
	}
	var d net.Dialer
	c, err := d.DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil {
		l.proxy.countRefused()
		return false
	}
	return l.attach(c.(*net.TCPConn))
}

// attach gives the link its server side, unless the link was reset meanwhile.
func (l *link) attach(server *net.TCPConn) bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.server = server
	if l.ctx.Err() != nil {
		abort(server)
		return false
	}
	return true
}

// reset ends the link at once with a RST to both sides.
func (l *link) reset() {
	l.end()
	abort(l.client)
	l.proxy.mu.Lock()
	server := l.server
	l.proxy.mu.Unlock()
	if server != nil {
		abort(server)
	}
}

func (l *link) wasCut() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.isCut
}

// abort closes a connection with a RST instead of a FIN.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
