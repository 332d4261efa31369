// Package redislock is a store on one Redis server: every law and every optional
// power of package driver, a line that hands over, and tokens that survive
// restarts. Import it for its side effect to open it by URL:
//
//	import _ "github.com/dibslock/dibs/redislock"
//
//	client, err := dibs.Open(ctx, "redis://locks.internal:6379", nil)
//
// The server must be Redis 7.0 or later, or Valkey.
//
// # How it works
//
// Each call is one script, which sees and changes the state of a name in one
// atomic step; lua/lib.lua and lua/line.lua have the rules, which are those of package memlock. A
// name's state is one string, and its line a list and a hash beside it, all in
// one slot. The keys expire by themselves when nothing of them matters, and only
// the high-water mark stays, from which all tokens are drawn.
//
// Trust comes from the clock of the server alone. No client time is ever sent.
//
// Package rueidis pipelines the calls of all goroutines over one connection. It
// would hang in two places for longer than a call's ctx allows: while it dials,
// and when its queue is full. So conn.go makes each connection a client of its
// own, which never dials twice, and link.go dials the next one in the background.
//
// A client has one channel, on which it hears what concerns its own claims and
// places (inbox.go): a hand-over carries the whole grant to the one process that
// waits for it.
//
// With ?layout=plain the lock is a plain string that other programs set by SET
// key token NX PX, and delete by a compare-and-delete script: see plain.go.
//
// # What can go wrong
//
// See docs/stores/redis.md. In short: a server that forgets forgets the locks,
// and so does one that evicts them; a step of the server's clock ends claims
// early or late; what is held across a failover to a replica may be held twice.
// In all of these the tokens go on growing, as long as the clocks are right to
// within the time that it took.
package redislock
