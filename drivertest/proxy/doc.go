// Package proxy is a TCP proxy that breaks connections on purpose, so that a
// test can show what a driver makes of a network that fails it.
//
//	p := proxy.New(t, server.Addr())
//	store := open(p.Addr())
//	p.Set(proxy.CutAfterRequest) // the next reply is lost, its request is not
//	...
//	p.Heal()
//
// It knows nothing of the protocol inside: whatever comes from the client is a
// request, whatever comes from the server is a reply. It doesn't slow down what
// it lets pass beyond what a loopback connection costs.
//
// A [Mode] holds for all connections, present and future, from the moment that
// [Proxy.Set] returns: bytes that reach the proxy later are treated by it. Bytes
// on their way inside the proxy at that moment may go either way.
//
// A test that injects a fault proves that it struck: see [Proxy.Stats] for what
// happened, and [Proxy.Wait] to wait for it to happen instead of sleeping.
//
// The files: mode.go names the faults; proxy.go is the listener and what tests
// call; link.go is one connection through the proxy; pipe.go is one direction of
// it; verdict.go says what a mode does to the bytes of a direction; stats.go
// counts.
package proxy
