package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
)

// A problem is the body of a Gate's refusal (RFC 9457). Tokens are text: numbers in
// JSON lose digits.
type problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Name    string `json:"name,omitempty"`
	Offered string `json:"offered,omitempty"`
	Newest  string `json:"newest,omitempty"`
	Outcome string `json:"outcome"` // "refused": nothing was done; "unknown": it was interrupted
}

// The types of problems. A stale token is a precondition that is not met (412) and
// not a conflict (409): the client said which state of the lock its request relies
// on, that state is over, and trying again is of no use.
const (
	typeStale   = "urn:dibs:fence:stale"
	typeMissing = "urn:dibs:fence:missing"
	typeInvalid = "urn:dibs:fence:invalid"
	typeName    = "urn:dibs:fence:other-name"
	typeBusy    = "urn:dibs:fence:busy"
	typeStore   = "urn:dibs:fence:store"
)

// problemOf says what a refusal looks like.
func problemOf(err error) problem {
	p := problem{Detail: err.Error(), Outcome: "refused"}
	stale, isStale := errors.AsType[*StaleError](err)
	other, isOther := errors.AsType[*otherNameError](err)
	switch {
	case isStale:
		p.Type, p.Title, p.Status = typeStale, "The lock was granted again since", http.StatusPreconditionFailed
		p.Name = stale.Name
		p.Offered, p.Newest = strconv.FormatUint(stale.Offered, 10), strconv.FormatUint(stale.Newest, 10)
		if stale.Interrupted {
			p.Outcome = "unknown"
		}
	case isOther:
		p.Type, p.Title, p.Status = typeName, "The resource is guarded by another lock", http.StatusPreconditionFailed
		p.Name = other.want
	case errors.Is(err, errNoHeader):
		p.Type, p.Title, p.Status = typeMissing, "A fencing token is required", http.StatusPreconditionRequired
	case errors.Is(err, errBusy):
		p.Type, p.Title, p.Status = typeBusy, "An older request has not ended yet", http.StatusServiceUnavailable
	case errors.Is(err, errStore):
		p.Type, p.Title, p.Status = typeStore, "The newest token can't be told", http.StatusServiceUnavailable
	default:
		p.Type, p.Title, p.Status = typeInvalid, "The fencing token can't be used", http.StatusBadRequest
	}
	return p
}

func (p problem) write(w http.ResponseWriter) {
	body, _ := json.Marshal(p) // strings and a number
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	w.Write(body)
}

// maxProblem bounds what ResponseError reads.
const maxProblem = 64 << 10

// ResponseError returns the *StaleError that a response of a [Gate] says, else nil.
// The body can be read afterwards as before.
func ResponseError(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusPreconditionFailed || kind != "application/problem+json" {
		return nil
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	var p problem
	if err != nil || json.Unmarshal(head, &p) != nil || p.Type != typeStale {
		return nil
	}
	stale := &StaleError{Name: p.Name, Interrupted: p.Outcome == "unknown"}
	stale.Offered, _ = strconv.ParseUint(p.Offered, 10, 64)
	stale.Newest, _ = strconv.ParseUint(p.Newest, 10, 64)
	return stale
}
