package drivertest

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A Harness makes fresh, empty storages of one kind of store.
type Harness struct {
	// Name is the store's, for messages.
	Name string
	// Bubble tells that the store may run inside a [testing/synctest] bubble:
	// it does no I/O, and every wait in it is durably blocking.
	Bubble bool
	// New makes a storage that nothing else uses; in the bubble, if Bubble is
	// set. What it needs to undo goes to t.Cleanup.
	New func(t testing.TB) Storage
	// Unfit are tests of laws that the store cannot play though it keeps the law,
	// and why: because it frees by session and the test ends a claim by another
	// client's hand, say. A key is the name of a law's test, such as
	// "L34_RefusedEndsAtOnce", or that and the name of a part behind a slash.
	Unfit map[string]string
	// AtOnce is how many laws run side by side where time is real; 0: 8. A server
	// that spends a processor's time on each client wants fewer.
	AtOnce int
}

// A Storage is what several clients share: a file, a server, a map.
type Storage struct {
	// Open opens another client, as another process would open it, and closes
	// it when the test ends. Closing it earlier is allowed.
	Open func(t testing.TB) driver.Store
	// Kill ends a client that Open or Cut returned as kill -9 of its process
	// does; closing it after that does no more than free memory. If Kill is nil,
	// the suite just stops using the client, which on a store that frees
	// BySession is not enough: there it is needed.
	Kill func(s driver.Store)
	// Cut opens a client behind a link that can fail. If it is nil, the suite
	// puts an in-process link in front of a client from Open.
	Cut func(t testing.TB) (driver.Store, Link)
	// Restart, if it is set, ends the server as kill -9 does and starts it again
	// with all that it has acknowledged: it returns when it answers.
	Restart func(t testing.TB)
	// Slack is added to the store's own Facts().Slack wherever a test waits for
	// something to happen: what the network and the machine need on top.
	Slack time.Duration
}
