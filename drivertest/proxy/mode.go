package proxy

import (
	"fmt"
	"time"
)

// Mode is what the proxy does to connections and bytes. The zero value is
// [Pass]. Modes are comparable.
type Mode struct {
	fault fault
	delay time.Duration
}

type fault int

const (
	pass fault = iota
	blackHole
	dropReplies
	cutAfterRequest
	cutOnce
	delayed
	refuse
)

var (
	// Pass forwards everything.
	Pass = Mode{}

	// BlackHole is a partition: connections are accepted, bytes are taken, and
	// nothing arrives, in either direction, not even the end of a connection. The
	// server doesn't see new connections. When the mode ends, all that was taken
	// flows on, as TCP sends again after a partition.
	BlackHole = Mode{fault: blackHole}

	// DropReplies lets requests through and swallows replies for good. A
	// connection that lost a byte so is reset when the mode ends: what would
	// follow on it belongs to requests that nobody waits for any more.
	DropReplies = Mode{fault: dropReplies}

	// CutAfterRequest forwards the next request of a connection, swallows its
	// reply, and resets the client's side. The server has read the request and
	// answered it, and then sees an orderly end of the connection. Each
	// connection, also each new one, is cut so until the mode ends. The reply to
	// an earlier request passes if it comes before the next request does.
	CutAfterRequest = Mode{fault: cutAfterRequest}

	// CutOnce is CutAfterRequest for the first connection that it strikes; the
	// mode is [Pass] from then on, so that a client that dials again gets through.
	CutOnce = Mode{fault: cutOnce}

	// Refuse resets new connections; those that exist go on. With
	// [Proxy.CutAll] it is a server that is down.
	Refuse = Mode{fault: refuse}
)

// Delay forwards every byte, and the end of a connection, d later than it came,
// in each direction: a round trip takes 2d longer. It delays, and doesn't
// slow down: what was sent together arrives together. Bytes that wait flow at
// once when the mode ends.
func Delay(d time.Duration) Mode { return Mode{fault: delayed, delay: d} }

func (m Mode) String() string {
	switch m.fault {
	case pass:
		return "pass"
	case blackHole:
		return "black hole"
	case dropReplies:
		return "drop replies"
	case cutAfterRequest:
		return "cut after request"
	case cutOnce:
		return "cut once"
	case delayed:
		return fmt.Sprintf("delay %s", m.delay)
	case refuse:
		return "refuse"
	}
	return "unknown"
}
