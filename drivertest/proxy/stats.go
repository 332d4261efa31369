package proxy

// Stats counts what a proxy has done since it was made. Bytes are counted once:
// as held, then as forwarded or dropped.
type Stats struct {
	Accepted int // connections that clients made, refused ones included
	Refused  int // of these, reset without reaching the server: Refuse, or the server is down
	Cuts     int // connections that CutAfterRequest or CutOnce cut
	Open     int // connections that are open now

	Requests int64 // bytes forwarded to the server
	Replies  int64 // bytes forwarded to clients
	Held     int64 // bytes that are in the proxy's hands now
	Dropped  int64 // bytes swallowed, or lost with their connection
}
