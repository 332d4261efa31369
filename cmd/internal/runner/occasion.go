package runner

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/executor"
	"github.com/dibslock/dibs/fence"
)

// ours are the variables that a command gets, and those that a dibs run around
// this process may have set.
var ours = []string{
	"DIBS_KEY", "DIBS_KEYS", "DIBS_FENCE", "DIBS_RUN_ID", "DIBS_SLOT", "DIBS_MODE", "DIBS_TTL", "DIBS_STORE",
	"DIBS_JOB", "DIBS_ATTEMPT", "DIBS_TRIGGER", "TRACEPARENT",
}

// environment is what a command has: this process's own, and what the run is.
func (r *Runner) environment(target config.Target, run book.Run) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ours, name)
	})
	env = append(env,
		"DIBS_KEY="+run.Lock,
		"DIBS_KEYS="+r.opts.Keys(run.Lock, run.Fence),
		"DIBS_FENCE="+strconv.FormatUint(run.Fence, 10),
		"DIBS_RUN_ID="+run.ID,
		"DIBS_JOB="+run.Job,
		"DIBS_ATTEMPT="+strconv.Itoa(run.Attempt),
		"DIBS_TRIGGER="+run.Trigger,
		"DIBS_TTL="+target.TTL.Duration.String(),
	)
	if run.Trace != "" {
		env = append(env, "TRACEPARENT="+run.Trace)
	}
	return env
}

// newTrace begins a trace (W3C Trace Context).
func newTrace() string {
	var id [24]byte
	_, _ = rand.Read(id[:]) // it never fails
	return fmt.Sprintf("00-%x-%x-01", id[:16], id[16:])
}

// request is the HTTP work of a run. Its key is the run's: all attempts have one,
// so that the other side can tell a repetition.
func (r *Runner) request(target config.Target, run book.Run, o config.Occasion) (executor.Work, error) {
	h := target.HTTP
	url, err := h.Render(h.URL, o)
	if err != nil {
		return nil, err
	}
	body, err := h.Render(h.Body, o)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, text := range h.Headers {
		value, err := h.Render(text, o)
		if err != nil {
			return nil, err
		}
		header.Set(name, value)
	}
	header.Set("Idempotency-Key", run.ID)
	header.Set("Dibs-Run-Id", run.ID)
	header.Set("Dibs-Job", run.Job)
	if h.SendFence {
		if err := fence.SetHeader(header, fence.Of(run.Lock, run.Fence)); err != nil {
			return nil, err
		}
	}
	if run.Trace != "" {
		header.Set("Traceparent", run.Trace)
	}
	return executor.Request{Method: h.Method, URL: url, Header: header, Body: body, Expect: h.Expect.Status, Timeout: h.Timeout.Duration}, nil
}
