package driver

import (
	"context"
	"iter"
	"time"
)

// A Watcher is a store that tells waiters when to ask again.
type Watcher interface {
	// Watch subscribes on behalf of c. From its return on no signalled change is
	// missed (law 28), so ask once more after it. The channel has capacity 1 and
	// coalesces: a newer signal replaces one that was not read. A receive that is
	// not a real change is allowed; a lost connection is told by a zero Signal.
	// stop ends the subscription and may be called more than once; so does the
	// end of ctx.
	Watch(ctx context.Context, c Claim) (signals <-chan Signal, stop func(), err error)
}

// A Signal tells one waiter to ask again, or that it was granted (law 29).
type Signal struct {
	Place uint64 // the place that it is about; 0: none, just ask again
	Grant *Grant // what the place was handed, for Grant.TTL counted from the last refused ask; nil: ask
}

// A Batcher is a store that grants several names all at once or not at all.
type Batcher interface {
	// AcquireAll grants all claims, in their order, or none and takes no place.
	// The names are distinct; Patience is ignored. A refusal is the *HeldError
	// of one name that is in the way.
	AcquireAll(ctx context.Context, cs []Claim) ([]Grant, error)
}

// A LossFeed is a store that sees losses as they happen.
type LossFeed interface {
	// Losses reports claims that this store's own callers have lost, until ctx
	// ends; then the channel is closed. A loss that is not reported is still
	// found by Renew, so an error that is certain (this user may not listen, say)
	// is no reason not to use the store: it does without the feed.
	Losses(ctx context.Context) (<-chan Loss, error)
}

// A Loss is the end of a claim that its holder did not ask for.
type Loss struct {
	Name string
	ID   string
	Err  error // an ErrNotHeld
}

// State is where a claim stands in its life (see the package comment).
type State uint8

// The states of a claim, as listed.
const (
	Held     State = iota + 1 // granted and proved by its holder
	Handed                    // handed over, not yet heard of
	Kept                      // ended, its Keep runs on
	Draining                  // ended by expiry or death, its Delay runs
	Revoked                   // force-unlocked; ends when its holder lets go or its TTL ends
	Waiting                   // in line
)

var states = [...]string{"", "held", "handed", "kept", "draining", "revoked", "waiting"}

// String returns the state's name, as the command prints it.
func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return "unknown"
}

// A Holder is a claim or a place as an operator sees it: no ID, so that nobody
// can act in its holder's name. Times are durations by the store's clock.
type Holder struct {
	Name     string
	State    State
	Token    uint64 // 0 for a place
	Fence    uint64
	Units    int
	Capacity int
	Place    uint64        // the place's number, 0 for a claim
	Age      time.Duration // since the grant; for a place since it was taken
	Left     time.Duration // until it ends if nobody is heard of
	TTL      time.Duration // what its holder asked for
	Note     string
	// Foreign: it is of a program that is no client of this store. Nothing is known
	// of how it is renewed, nor of an Age or a Left that is 0.
	Foreign bool
}

// Mode tells what kind of claim h is.
func (h Holder) Mode() Mode { return Claim{Units: h.Units, Capacity: h.Capacity}.Mode() }

// A Lister is a store that can tell who holds and who waits.
type Lister interface {
	// List yields the live claims of every name that begins with prefix, and the
	// places behind them, ordered by name, claims by token before places in
	// line. Claims and places that have ended are not listed. An error ends it.
	List(ctx context.Context, prefix string) iter.Seq2[Holder, error]
}

// A Revoker is a store that can take a claim away (law 22).
type Revoker interface {
	// Revoke takes away the claim on r.Name that has r.Token. Its holder is told
	// at the next renewal (ErrRevoked) and the claim is never extended again; the
	// name stays taken until the holder lets go or the TTL ends. r.Now frees the
	// name at once, kept and draining claims too. A *NotHeldError means that no
	// claim on the name has that token, so that a successor is never hit.
	Revoke(ctx context.Context, r Revocation) error
}

// A Revocation is an operator's order to take a claim away.
type Revocation struct {
	Name   string
	Token  uint64
	Now    bool   // free the name at once, without asking the holder
	Reason string // for the journal; at most MaxNote bytes
}

// An EventKind says what happened to a claim.
type EventKind uint8

// What a Journal records.
const (
	EventGranted  EventKind = iota + 1 // by an Acquire
	EventHanded                        // to a place, by another's end
	EventReleased                      // by its holder; a claim with Keep left is kept
	EventExpired                       // by its TTL or a death, written when it is noticed
	EventRevoked                       // force-unlocked
)

var eventKinds = [...]string{"", "granted", "handed", "released", "expired", "revoked"}

// String returns the kind's name, as the command prints it.
func (k EventKind) String() string {
	if int(k) < len(eventKinds) {
		return eventKinds[k]
	}
	return "unknown"
}

// An Event is one line of a Journal.
type Event struct {
	Seq      uint64    // grows
	At       time.Time // by the store's clock for people and records; never used for exclusion
	Kind     EventKind
	Name     string
	Token    uint64
	Fence    uint64
	Units    int
	Capacity int
	TookOver bool   // granted, handed: see Grant.TookOver
	Now      bool   // revoked: freed at once
	Note     string // the claim's
	Reason   string // revoked: the operator's
}

// A Journal is a store that keeps an event log shared by all its users, written
// in the same step as what it tells of. A store may bound its length.
type Journal interface {
	// Events yields the events after seq on names that begin with prefix, oldest
	// first. An error ends it.
	Events(ctx context.Context, prefix string, seq uint64) iter.Seq2[Event, error]
}

// Records is a store that keeps small values by version (laws 46 to 48). Once,
// schedule occurrences, idempotency keys and run states stand on it. Keys obey
// CheckName and share no space with lock names.
type Records interface {
	// Get returns the record at key and the store's now. A key without a record
	// has Version 0 and no error.
	Get(ctx context.Context, key string) (Record, time.Time, error)

	// Put writes r if the record's version is r.Version (0: there is none) and
	// returns the new version. ErrStale: the version is another. ErrFenced: a
	// larger token of r.TokenName was seen. Both are certain. r.Retention counts
	// from this Put. A r.TokenName of "" keeps name and token as they are.
	Put(ctx context.Context, r Record) (uint64, error)

	// Delete removes the record at key if its version is version; ErrStale
	// otherwise.
	Delete(ctx context.Context, key string, version uint64) error

	// ListRecords yields the records whose keys begin with prefix, ordered by key.
	// Records whose retention has ended are not listed. An error ends it.
	ListRecords(ctx context.Context, prefix string) iter.Seq2[Record, error]
}

// MaxRecord is the longest Value of a Record, in bytes.
const MaxRecord = 1 << 20

// A Record is a small value that outlives the process that wrote it.
type Record struct {
	Key       string
	Value     []byte
	Version   uint64        // grows with every Put; 0: no record
	TokenName string        // the name of the lease under which it was written
	Token     uint64        // and that lease's token; never 0 with a TokenName
	Retention time.Duration // Put: how long it lives; Get and List: how long it lives still
}
