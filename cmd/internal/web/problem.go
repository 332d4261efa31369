package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/runner"
)

// A Problem is an answer that is no success (RFC 9457).
type Problem struct {
	Type   string  `json:"type" doc:"what kind of problem it is"`
	Title  string  `json:"title" doc:"the same for people"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty" doc:"what happened, and what can be done"`
	Holder *Holder `json:"holder,omitempty" doc:"who is in the way"`

	header http.Header
}

// Error, GetStatus, GetHeaders and ContentType are what huma asks of an error.
func (p *Problem) Error() string             { return p.Detail }
func (p *Problem) GetStatus() int            { return p.Status }
func (p *Problem) GetHeaders() http.Header   { return p.header }
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

var problemOf = reflect.TypeFor[Problem]()

func init() {
	huma.ValidateStrictCasing = true // "Params" is not "params"
	// The library's own complaints are problems too.
	huma.NewError = func(status int, text string, errs ...error) huma.StatusError {
		for _, err := range errs {
			if err != nil {
				text += "; " + err.Error()
			}
		}
		if status == http.StatusUnsupportedMediaType {
			text += "; send JSON, and say so: Content-Type: application/json"
		}
		return problem(status, "", "%s", text)
	}
}

// problem makes one. kind "" is about:blank: the status says it all.
func problem(status int, kind, format string, args ...any) *Problem {
	p := &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...), header: http.Header{}}
	if kind != "" {
		p.Type = "urn:dibs:" + kind
		p.Title = strings.ReplaceAll(kind, "-", " ")
	}
	return p
}

// retry says when to try again: whole seconds, rounded up.
func (p *Problem) retry(after time.Duration) *Problem {
	p.header.Set("Retry-After", strconv.Itoa(seconds(after)))
	return p
}

func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// write answers with p outside of huma.
func (p *Problem) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.header)
	w.Header().Set("Content-Type", problemType)
	w.Header().Del("Content-Length")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client has gone
}

// refusal is the problem that an error of the runner is. Contention is never a
// 5xx; a store that gives no clear answer, or refuses to work, is a 503.
func refusal(err error) error {
	var (
		paused *runner.PausedError
		busy   *runner.BusyError
		limit  *runner.LimitError
		full   *book.FullError
		param  *runner.ParamError
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runner.ErrNoJob):
		return problem(http.StatusNotFound, "no-such-job", "%v", err)
	case errors.Is(err, book.ErrNone):
		return problem(http.StatusNotFound, "no-such-run", "there is no such run, or not any more")
	case errors.Is(err, runner.ErrEnded):
		return problem(http.StatusConflict, "ended", "the run has ended already")
	case errors.As(err, &param):
		return problem(http.StatusUnprocessableEntity, "bad-parameter", "%v", param)
	case errors.Is(err, runner.ErrKeyReused):
		return problem(http.StatusUnprocessableEntity, "key-reused", "%v", err)
	case errors.As(err, &paused):
		return problem(http.StatusLocked, "paused", "%v", paused)
	case errors.As(err, &busy):
		p := problem(http.StatusConflict, "already-running", "%v", busy.HeldError).retry(busy.RetryAfter)
		if busy.Holder != nil {
			h := holderOf(*busy.Holder)
			p.Holder = &h
		}
		return p
	case errors.As(err, &limit):
		p := problem(http.StatusTooManyRequests, "rate-limited", "%v", limit).retry(limit.RetryAfter)
		p.header.Set("RateLimit", rateLimit(limit.Quota))
		p.header.Set("RateLimit-Policy", ratePolicy(limit.Limit.Runs, limit.Limit.Per.Duration))
		return p
	case errors.As(err, &full):
		return problem(http.StatusTooManyRequests, "queue-full", "%v", full).retry(time.Second)
	case errors.Is(err, runner.ErrCrowded):
		return problem(http.StatusTooManyRequests, "crowded", "%v; ask another one", err).retry(time.Second)
	case errors.Is(err, runner.ErrDraining):
		return problem(http.StatusServiceUnavailable, "draining", "%v; ask another one", err).retry(time.Second)
	case errors.Is(err, errors.ErrUnsupported):
		return problem(http.StatusNotImplemented, "unsupported", "%v", err)
	case errors.Is(err, dibs.ErrRejected): // nothing that the client asked for: its file is gone, or a right
		return problem(http.StatusServiceUnavailable, "store-refuses", "the store refuses: %v", err).retry(10 * time.Second)
	}
	return problem(http.StatusServiceUnavailable, "store-down", "the store gives no clear answer: %v", err).retry(time.Second)
}

// rateLimit and ratePolicy are the fields of draft-ietf-httpapi-ratelimit-headers.
func rateLimit(q dibs.Quota) string {
	return fmt.Sprintf(`"runs";r=%d;t=%d`, q.Remaining, int(math.Ceil(q.Reset.Seconds())))
}

func ratePolicy(n int, per time.Duration) string {
	return fmt.Sprintf(`"runs";q=%d;w=%d`, n, seconds(per))
}
