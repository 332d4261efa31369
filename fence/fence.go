package fence

import (
	"context"
	"fmt"
	"math"
)

// Fenced is a lease as a guard sees it; a *dibs.Lease is one.
type Fenced interface {
	Name() string  // what is locked
	Fence() uint64 // the token of the grant; 0: none
}

// Of returns what a lease's name and token say, for a token that came from
// elsewhere: $DIBS_KEY and $DIBS_FENCE under dibs run, or a message.
func Of(name string, token uint64) Fenced { return pair{name, token} }

type pair struct {
	name  string
	token uint64
}

func (p pair) Name() string  { return p.name }
func (p pair) Fence() uint64 { return p.token }

// A Store remembers the largest token of each name, for a [Gate]. [*Memory] is
// one, [Redis] is one, and [SQL.Store] makes one.
type Store interface {
	// Raise makes token the newest of name unless a newer one is, and returns the
	// newest, in one step. An error says that nothing is known.
	Raise(ctx context.Context, name string, token uint64) (newest uint64, err error)
}

// MaxToken is the largest token that a guard takes: databases have no larger
// integers.
const MaxToken = math.MaxInt64

const maxName = 512 // bytes, as in dibs

// offered returns the lease's name and token if there is something to compare.
func offered(lease Fenced) (name string, token uint64, err error) {
	name, token = lease.Name(), lease.Fence()
	switch {
	case token == 0:
		return name, 0, &noFenceError{name}
	case name == "" || len(name) > maxName:
		return name, 0, fmt.Errorf("fence: a name of 1 to %d bytes is needed, and this one has %d", maxName, len(name))
	case token > MaxToken:
		return name, 0, &tooLargeError{name, token}
	}
	return name, token, nil
}

// judge compares what was offered with the newest.
func judge(name string, token, newest uint64) error {
	if token < newest {
		return &StaleError{Name: name, Offered: token, Newest: newest}
	}
	return nil
}
