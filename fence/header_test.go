package fence_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dibslock/dibs/fence"
)

func TestHeaderCarriesNamesExactly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "orders/42", "a b", "ä", "🔒", "%41", "\"',;=", "a\u00a0b"} {
		h := http.Header{}
		must(t, fence.SetHeader(h, fence.Of(name, 1<<60+1)))
		for _, r := range h.Get(fence.HeaderName) {
			if r <= ' ' || r > '~' {
				t.Errorf("%q: the header has %q", name, r)
			}
		}
		lease, err := fence.FromHeader(h)
		if err != nil || lease.Name() != name || lease.Fence() != 1<<60+1 {
			t.Errorf("%q came back as %v, %v", name, lease, err)
		}
	}
}

func TestHeaderRefusesWhatIsNoToken(t *testing.T) {
	t.Parallel()
	for what, h := range map[string]http.Header{
		"nothing":        {},
		"no name":        {fence.HeaderFence: {"1"}},
		"no token":       {fence.HeaderName: {"a"}},
		"two tokens":     {fence.HeaderName: {"a"}, fence.HeaderFence: {"1", "2"}},
		"an empty name":  {fence.HeaderName: {""}, fence.HeaderFence: {"1"}},
		"a bad escape":   {fence.HeaderName: {"%zz"}, fence.HeaderFence: {"1"}},
		"words":          {fence.HeaderName: {"a"}, fence.HeaderFence: {"one"}},
		"a sign":         {fence.HeaderName: {"a"}, fence.HeaderFence: {"+1"}},
		"less than none": {fence.HeaderName: {"a"}, fence.HeaderFence: {"-1"}},
		"too much":       {fence.HeaderName: {"a"}, fence.HeaderFence: {"18446744073709551616"}},
		"above the max":  {fence.HeaderName: {"a"}, fence.HeaderFence: {"9223372036854775808"}},
	} {
		if lease, err := fence.FromHeader(h); err == nil {
			t.Errorf("%s: %v", what, lease)
		}
	}
	if _, err := fence.FromHeader(http.Header{fence.HeaderName: {"a"}, fence.HeaderFence: {"0"}}); !errors.Is(err, fence.ErrNoFence) {
		t.Errorf("fence 0: %v", err)
	}
	if err := fence.SetHeader(http.Header{}, fence.Of("a", 0)); !errors.Is(err, fence.ErrNoFence) {
		t.Errorf("fence 0: %v", err)
	}
}

// recorder is a RoundTripper that sends nothing.
type recorder struct{ got []*http.Request }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.got = append(r.got, req)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// body tells whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func TestTransportSendsTheLease(t *testing.T) {
	t.Parallel()
	var sent recorder
	request := func() *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://bank.test/", nil)
		must(t, err)
		return r
	}
	own := &fence.Transport{Base: &sent, Lease: fence.Of("a", 5)}
	plain := request()
	_, err := own.RoundTrip(plain)
	must(t, err)
	if len(plain.Header) != 0 {
		t.Errorf("the caller's request was changed: %v", plain.Header)
	}
	_, err = own.RoundTrip(request().WithContext(fence.NewContext(t.Context(), fence.Of("b", 6))))
	must(t, err)
	for i, want := range []fence.Fenced{fence.Of("a", 5), fence.Of("b", 6)} {
		if lease, err := fence.FromHeader(sent.got[i].Header); err != nil || lease != want {
			t.Errorf("request %d offers %v, %v; want %v", i, lease, err, want)
		}
	}

	for what, tr := range map[string]*fence.Transport{
		"no lease": {Base: &sent},
		"fence 0":  {Base: &sent, Lease: fence.Of("a", 0)},
	} {
		r, b := request(), &body{Reader: strings.NewReader("x")}
		r.Body = b
		if _, err := tr.RoundTrip(r); !errors.Is(err, fence.ErrNoFence) || !b.closed {
			t.Errorf("%s: %v, body closed: %v", what, err, b.closed)
		}
	}
	if len(sent.got) != 2 {
		t.Errorf("%d requests were sent, want 2", len(sent.got))
	}
}
