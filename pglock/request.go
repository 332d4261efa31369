package pglock

import (
	"context"
	"os"

	"github.com/dibslock/dibs/driver"
)

// What a warden is asked for.
type requestKind uint8

const (
	requestTry requestKind = iota
	requestProve
	requestUnlock
	requestPing
	requestHear
	requestHash
	requestLife
	requestList
	requestRevoke
	requestReap  // a claim that was revoked is over
	requestQuery // any statement of one row
)

// A request is one caller's call. Its answer is read once done is closed.
type request struct {
	kind  requestKind
	key   key
	claim driver.Claim
	now   bool     // of requestRevoke
	name  string   // of requestQuery: the statement
	args  []string // in text

	w    *warden
	done chan struct{}
	left bool // its caller has gone; guarded by w.mu
	result
}

// A result is the answer to a request.
type result struct {
	grant   driver.Grant
	key     key
	file    *os.File        // of requestLife
	pid     uint32          // of requestList
	holders []driver.Holder // of requestList and requestRevoke
	row     []string        // of requestQuery
	err     error
}

// await waits for the answer, or for the end of ctx. The session goes on with what
// it was asked for, and gives back what nobody wants.
func (r *request) await(ctx context.Context) result {
	select {
	case <-r.done:
		return r.result
	case <-ctx.Done():
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	select {
	case <-r.done: // at the last moment: else it would be nobody's
		return r.result
	default:
		r.left = true
		return result{err: left(ctx)}
	}
}

// answer gives r its answer, and tells whether anybody is there to hear it.
func (r *request) answer(res result) bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	select {
	case <-r.done:
		return !r.left
	default:
	}
	r.result = res
	close(r.done)
	return !r.left
}

// gone tells whether the caller has left.
func (r *request) gone() bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.left
}
