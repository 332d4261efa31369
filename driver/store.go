package driver

import (
	"context"
	"time"
)

// A Store grants claims. All methods may be called by many goroutines at once,
// and each returns when its ctx ends, also while the server hangs, and leaves no
// goroutine behind (law 9). After Close every call answers ErrClosed.
type Store interface {
	// Acquire asks once for c and never waits for another holder. Repeated with
	// the same ID while the claim lives, it returns the same grant again and
	// makes it live TTL from this call (law 3). A *HeldError is a certain no; a
	// place was taken (or refreshed) if c.Patience > 0 and the store is Ordered.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew proves claims and refreshes places, many at once: one Proof for each
	// claim, in the same order. A claim with Token 0 is a place. The error is
	// about the whole call, is never certain of any claim, and comes with
	// whatever proofs are known: len(proofs) is len(cs) or 0. A claim whose
	// proof is not known has an unknown Err.
	Renew(ctx context.Context, cs []Claim) ([]Proof, error)

	// Release gives back c, or its place in line, whichever exists. It goes by
	// ID, and by Token unless that is 0 (an acquire taken back). With Keep left
	// the claim becomes kept (law 18). A *NotHeldError means that nothing was
	// there to give back.
	Release(ctx context.Context, c Claim) error

	// Facts tells what this store promises. It never changes and never blocks.
	Facts() Facts

	// Close frees the store's own resources, not the claims.
	Close() error
}

// A Grant is a store's yes.
type Grant struct {
	Token    uint64        // identifies the grant (law 11); never 0
	Fence    uint64        // what a resource checks (law 12); 0: nothing to fence with
	TTL      time.Duration // how long to trust the grant, counted from just before the call
	TookOver bool          // the claim before this one ended by expiry or death, not by release
}

// A Proof is a store's answer to the renewal of one claim (law 15).
type Proof struct {
	TTL   time.Duration // how long to trust the claim, counted from just before the call
	Grant *Grant        // what a place was handed meanwhile, or a claim asked for with Token 0
	Err   error         // nil: held. ErrNotHeld: gone for good. ErrHeld: a place, refreshed. Other: unknown
}
