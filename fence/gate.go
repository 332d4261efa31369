package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A Gate guards what is behind an HTTP handler. It refuses a request whose token
// is older than the newest seen; and before it admits the first request with a
// newer token it cancels those with older ones that are under way, and waits until
// they have ended.
//
// A refusal is application/problem+json: 412 for a stale token or the wrong lock,
// 428 for a request without a token, 400 for one that can't be used, 503 (with
// Retry-After) if the store does not answer or an older request doesn't end.
// [ResponseError] turns a client's 412 back into a *StaleError.
//
// Requests under way are known to this Gate alone. If several processes serve the
// resource, a Store that they share lets each refuse what any of them knows to be
// stale; but what is under way in another goes on, so guard the writes too, by the
// lease from [FromContext].
//
// Clients are believed: one that makes up a large token locks the others out.
// Authenticate before.
type Gate struct {
	// Store remembers the newest tokens; nil: the Gate's own memory, which ends with
	// the process.
	Store Store
	// Name says which lock guards what a request is for; another is refused. nil, or
	// "": the lock that the request names.
	Name func(r *http.Request) string
	// Patience is how long a request waits for older ones to end; 0: 10 s.
	Patience time.Duration

	own     Memory
	traffic traffic
}

const defaultPatience = 10 * time.Second

var (
	errBusy  = errors.New("an older request has not ended")
	errStore = errors.New("the newest token can't be told")
)

type otherNameError struct{ name, want string }

func (e *otherNameError) Error() string {
	return fmt.Sprintf("fence: the request holds %q, and what it is for is guarded by %q", e.name, e.want)
}

// Wrap returns next behind the gate. The context of a request that next gets
// carries the lease ([FromContext]), and ends with a *StaleError as its cause when a
// newer token has come; reading the body fails from then on. next must then return
// soon, since the newer request waits for it. If it returns without having written
// anything, the Gate writes a 412 that says that the request was interrupted.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.serve(next, w, r); err != nil {
			problemOf(err).write(w)
		}
	})
}

// serve returns an error if nothing was written.
func (g *Gate) serve(next http.Handler, w http.ResponseWriter, r *http.Request) error {
	lease, err := g.lease(r)
	if err != nil {
		return err
	}
	v, older, err := g.traffic.enter(r.Context(), lease.Name(), lease.Fence())
	if err != nil {
		return err
	}
	defer g.traffic.leave(v)
	if err := g.admit(v, older); err != nil {
		return err
	}
	defer onEnd(v.ctx, func() {
		// A handler may be waiting for the client, and not for its context.
		http.NewResponseController(w).SetReadDeadline(time.Now())
	})()
	a := &answer{ResponseWriter: w}
	next.ServeHTTP(a, r.WithContext(NewContext(v.ctx, lease)))
	if stale, ok := errors.AsType[*StaleError](context.Cause(v.ctx)); ok && !a.begun {
		return stale
	}
	return nil
}

// lease returns what the request offers, if that is of the right lock.
func (g *Gate) lease(r *http.Request) (Fenced, error) {
	lease, err := FromHeader(r.Header)
	if err != nil || g.Name == nil {
		return lease, err
	}
	if want := g.Name(r); want != "" && want != lease.Name() {
		return nil, &otherNameError{lease.Name(), want}
	}
	return lease, nil
}

// admit returns when the visit's token is the newest and older requests have
// ended.
func (g *Gate) admit(v *visit, older []*visit) error {
	var store Store = &g.own
	if g.Store != nil {
		store = g.Store
	}
	newest, err := store.Raise(v.ctx, v.name, v.token)
	if err == nil {
		err = judge(v.name, v.token, newest)
		g.traffic.raise(v.name, newest)
	} else {
		err = fmt.Errorf("fence of %q: %w: %w", v.name, errStore, err)
	}
	if err != nil {
		return v.refused(err)
	}
	patience := g.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, o := range older {
		select {
		case <-o.gone:
		case <-v.ctx.Done():
			return v.refused(context.Cause(v.ctx))
		case <-timer.C:
			return fmt.Errorf("fence of %q: %w: one with token %d is under way", v.name, errBusy, o.token)
		}
	}
	if v.ctx.Err() != nil {
		return v.refused(context.Cause(v.ctx))
	}
	return nil
}

// refused is err, or that a newer token has come, for a visit that had not begun.
func (v *visit) refused(err error) error {
	if stale, ok := errors.AsType[*StaleError](context.Cause(v.ctx)); ok {
		return &StaleError{Name: stale.Name, Offered: stale.Offered, Newest: stale.Newest}
	}
	return err
}

// onEnd calls f when ctx ends, unless stop is called before; f is not running any
// more when stop returns.
func onEnd(ctx context.Context, f func()) (stop func()) {
	var running sync.WaitGroup
	running.Add(1)
	cancel := context.AfterFunc(ctx, func() {
		defer running.Done()
		f()
	})
	return func() {
		if !cancel() {
			running.Wait()
		}
	}
}

// An answer notes whether anything was written.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (a *answer) WriteHeader(status int) {
	// 1xx answers are not the answer, but for 101.
	a.begun = a.begun || status >= 200 || status == http.StatusSwitchingProtocols
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// Flush is an [http.Flusher]'s.
func (a *answer) Flush() {
	a.begun = true
	http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap lets an [http.ResponseController] find the rest.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
