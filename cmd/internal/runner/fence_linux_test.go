package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/runner"
	"github.com/dibslock/dibs/fence"
)

// TestSendFence: what an http job calls may be behind a fence.Gate, which lets the
// run in, and refuses the token of a run before it.
func TestSendFence(t *testing.T) {
	t.Parallel()
	gate := &fence.Gate{Name: func(*http.Request) string { return "job:a" }}
	s := httptest.NewServer(gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := fence.FromContext(r.Context())
		fmt.Fprint(w, "under ", lease.Fence())
	})))
	defer s.Close()
	f := newFleet(t)
	r := f.start("  a: { http: { url: "+s.URL+", send_fence: true } }\n", 0)
	got, err := f.ask(r, runner.Request{Job: "a", Trigger: "http", By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	run := f.end(r, got.Run.ID)
	if run.State != book.Succeeded || run.Fence == 0 {
		t.Fatalf("%+v", run)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	req.RequestURI = ""
	resp, err := (&http.Client{Transport: &fence.Transport{Lease: fence.Of("job:a", run.Fence-1)}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if stale := fence.ResponseError(resp); stale == nil {
		t.Errorf("an older token was let in: %s", resp.Status)
	}
}
