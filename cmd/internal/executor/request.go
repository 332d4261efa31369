package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Request is an HTTP request. It is sent once: a retry is a new Run.
type Request struct {
	Method  string
	URL     string
	Header  http.Header
	Body    string
	Expect  []int         // the statuses that are a success; nil: 2xx
	Timeout time.Duration // of the request
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 1 << 20

// client follows no redirects: the body and the headers were meant for the one
// that they were configured for.
var client = &http.Client{
	Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

var (
	errTimeout = errors.New("no answer in time")
	errLoss    = errors.New("the lock was lost")
)

// Run makes the request. When the lock is lost it is given up; what the other side
// does with a request that it has is for the fencing token to settle.
func (r Request) Run(ctx context.Context, lease Lease, limits Limits, out io.Writer) Result {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := r.Timeout
	if limits.Timeout > 0 {
		timeout = min(timeout, limits.Timeout)
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer stop()
	if !limits.Warn {
		done := make(chan struct{})
		defer func() { <-done }()
		defer cancel(nil)
		go func() { // ends with ctx
			defer close(done)
			r.watch(ctx, lease, limits.Margin, cancel)
		}()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return Result{End: Broken, Reason: err.Error()}
	}
	req.Header = r.Header.Clone()
	answer, err := client.Do(req)
	if err != nil {
		return r.failed(ctx, err)
	}
	defer answer.Body.Close()
	fmt.Fprintf(out, "%s %s\n", answer.Proto, answer.Status)
	if _, err := io.Copy(out, io.LimitReader(answer.Body, maxAnswer)); err != nil {
		return r.failed(ctx, err)
	}
	ok := answer.StatusCode/100 == 2
	if r.Expect != nil {
		ok = slices.Contains(r.Expect, answer.StatusCode)
	}
	result := Result{End: Done, OK: ok, Status: answer.StatusCode}
	if !ok {
		result.Reason = "the answer is " + answer.Status
	}
	return result
}

// watch gives the request up before the lock can be another's.
func (r Request) watch(ctx context.Context, lease Lease, margin time.Duration, cancel context.CancelCauseFunc) {
	lost := lease.Context().Done()
	for {
		left := lease.Remaining() - margin
		if left <= 0 {
			cancel(fmt.Errorf("%w: %w", errLoss, errors.Join(lease.Check(), errDoubt)))
			return
		}
		select {
		case <-time.After(min(left, time.Second)):
		case <-lost:
		case <-ctx.Done():
			return
		}
	}
}

func (r Request) failed(ctx context.Context, err error) Result {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return Result{End: Done, Reason: err.Error()}
	case errors.Is(cause, errTimeout):
		return Result{End: Timeout, Reason: fmt.Sprintf("no answer within %v", r.Timeout)}
	case errors.Is(cause, errLoss):
		return Result{End: Lost, Reason: cause.Error()}
	default:
		return Result{End: Stopped, Reason: cause.Error()}
	}
}
