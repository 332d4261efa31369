package dibs

import (
	"context"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Hooks are told what happens, for logs, metrics and traces. Every func may be
// nil, is called on the goroutine on which the thing happened, must be quick,
// and must not call the client. They hold no locks of dibs.
type Hooks struct {
	// Acquiring is told before the first ask of an acquire, and may return a ctx
	// with, say, a span; the other hooks of that acquire get it.
	Acquiring func(ctx context.Context, info AcquireInfo) context.Context
	// Waiting is told of every refusal that a Lock waits on.
	Waiting func(ctx context.Context, info AcquireInfo, refusal *HeldError)
	// Retrying is told of every unclear answer that a Lock retries.
	Retrying func(ctx context.Context, info AcquireInfo, err error)
	// Acquired is told of the end of an acquire: lease or err is nil.
	Acquired func(ctx context.Context, info AcquireInfo, lease *Lease, err error)
	// Renewed is told of every renewal call.
	Renewed func(info RenewInfo)
	// Lost is told of the end of a lease that its holder did not ask for.
	Lost func(lease *Lease, err *LostError)
	// Released is told when the store has answered a release, or when it was
	// given up: err is nil if the claim was given back.
	Released func(lease *Lease, err error)
	// Requested is told of every call of the store that asks for a claim, renews
	// some, or releases one, also of those in the background.
	Requested func(info RequestInfo)
}

// AcquireInfo describes one Lock or TryLock.
type AcquireInfo struct {
	Name   string
	Store  string // the driver's name
	Mode   string // "exclusive", "shared" or "counted"
	Wait   bool   // Lock, and not TryLock
	Waited time.Duration
}

// RenewInfo describes one renewal call.
type RenewInfo struct {
	Store  string        // the driver's name
	Leases int           // how many leases it was for
	Places int           // and how many places in line
	Failed int           // how many of both got no clear answer
	Margin time.Duration // the least trust that was left to a lease when it was sent; negative: none; for places alone the largest there is
	Took   time.Duration
	Err    error // of the call as a whole
}

// RequestInfo describes one call of the store.
type RequestInfo struct {
	Store string // the driver's name
	Op    string // "acquire", "renew" or "release"
	Took  time.Duration
	Err   error // nil, a certain no, or an unclear answer
}

// Clear tells that the store answered, be it with a no.
func (r RequestInfo) Clear() bool { return driver.Certain(r.Err) }

// JoinHooks returns hooks that tell all of hs, in order.
func JoinHooks(hs ...Hooks) Hooks {
	return Hooks{
		Acquiring: func(ctx context.Context, info AcquireInfo) context.Context {
			for _, h := range hs {
				ctx = h.acquiring(ctx, info)
			}
			return ctx
		},
		Waiting: func(ctx context.Context, info AcquireInfo, refusal *HeldError) {
			for _, h := range hs {
				h.waiting(ctx, info, refusal)
			}
		},
		Retrying: func(ctx context.Context, info AcquireInfo, err error) {
			for _, h := range hs {
				h.retrying(ctx, info, err)
			}
		},
		Acquired: func(ctx context.Context, info AcquireInfo, lease *Lease, err error) {
			for _, h := range hs {
				h.acquired(ctx, info, lease, err)
			}
		},
		Renewed: func(info RenewInfo) {
			for _, h := range hs {
				h.renewed(info)
			}
		},
		Lost: func(lease *Lease, err *LostError) {
			for _, h := range hs {
				h.lost(lease, err)
			}
		},
		Released: func(lease *Lease, err error) {
			for _, h := range hs {
				h.released(lease, err)
			}
		},
		Requested: func(info RequestInfo) {
			for _, h := range hs {
				if h.Requested != nil {
					h.Requested(info)
				}
			}
		},
	}
}

// sent is when a call of the store is made, if anybody wants to know.
func (c *core) sent() time.Duration {
	if c.hooks.Requested == nil {
		return 0
	}
	return c.clock.now()
}

// requested tells of a call of the store that was sent then.
func (c *core) requested(op string, sent time.Duration, err error) {
	if c.hooks.Requested != nil {
		c.hooks.Requested(RequestInfo{Store: c.facts.Driver, Op: op, Took: c.clock.now() - sent, Err: err})
	}
}

func (h *Hooks) acquiring(ctx context.Context, info AcquireInfo) context.Context {
	if h.Acquiring == nil {
		return ctx
	}
	return h.Acquiring(ctx, info)
}

func (h *Hooks) waiting(ctx context.Context, info AcquireInfo, refusal *HeldError) {
	if h.Waiting != nil {
		h.Waiting(ctx, info, refusal)
	}
}

func (h *Hooks) retrying(ctx context.Context, info AcquireInfo, err error) {
	if h.Retrying != nil {
		h.Retrying(ctx, info, err)
	}
}

func (h *Hooks) acquired(ctx context.Context, info AcquireInfo, lease *Lease, err error) {
	if h.Acquired != nil {
		h.Acquired(ctx, info, lease, err)
	}
}

func (h *Hooks) renewed(info RenewInfo) {
	if h.Renewed != nil {
		h.Renewed(info)
	}
}

func (h *Hooks) lost(lease *Lease, err *LostError) {
	if h.Lost != nil {
		h.Lost(lease, err)
	}
}

func (h *Hooks) released(lease *Lease, err error) {
	if h.Released != nil {
		h.Released(lease, err)
	}
}
