package fence

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// The headers of a fenced request.
const (
	HeaderName  = "Dibs-Name"  // the lease's name, escaped as a segment of a URL's path
	HeaderFence = "Dibs-Fence" // its token, in decimal digits
)

// SetHeader has a request, or a message of another kind with such headers, offer
// the lease. The error is ErrNoFence if there is nothing to offer.
func SetHeader(h http.Header, lease Fenced) error {
	name, token, err := offered(lease)
	if err != nil {
		return err
	}
	h.Set(HeaderName, url.PathEscape(name))
	h.Set(HeaderFence, strconv.FormatUint(token, 10))
	return nil
}

// errNoHeader says that a request offers no lease at all.
var errNoHeader = errors.New("fence: the request has no " + HeaderFence + " header")

// FromHeader returns the lease that a request offers.
func FromHeader(h http.Header) (Fenced, error) {
	names, tokens := h.Values(HeaderName), h.Values(HeaderFence)
	if len(names) == 0 && len(tokens) == 0 {
		return nil, errNoHeader
	}
	if len(names) != 1 || len(tokens) != 1 {
		return nil, fmt.Errorf("fence: want %s and %s once each, and not %d and %d times", HeaderName, HeaderFence, len(names), len(tokens))
	}
	name, err := url.PathUnescape(names[0])
	if err != nil {
		return nil, fmt.Errorf("fence: %s: %w", HeaderName, err)
	}
	token, err := strconv.ParseUint(tokens[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("fence: %s: %w", HeaderFence, err)
	}
	lease := Of(name, token)
	_, _, err = offered(lease)
	return lease, err
}

// A Transport sends each request's lease: the one that its context carries
// ([NewContext]), or Lease. A request without any is refused with ErrNoFence before
// it is sent: a guard that is forgotten now and then is none.
type Transport struct {
	Base  http.RoundTripper // nil: http.DefaultTransport
	Lease Fenced            // for requests whose context carries none; may be nil
}

// RoundTrip sends a copy of r with the headers.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	lease, ok := FromContext(r.Context())
	if !ok {
		lease = t.Lease
	}
	var err error
	if lease == nil {
		err = fmt.Errorf("%w: neither the request's context nor the Transport has a lease", ErrNoFence)
	} else {
		sent := r.Clone(r.Context())
		if err = SetHeader(sent.Header, lease); err == nil {
			return t.base().RoundTrip(sent)
		}
	}
	if r.Body != nil {
		r.Body.Close() // a RoundTripper does, also on errors
	}
	return nil, err
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}
