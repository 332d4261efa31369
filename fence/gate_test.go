package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/fence"
)

// send sends a request to a handler without a network.
func send(ctx context.Context, h http.Handler, lease fence.Fenced) *http.Response {
	r := httptest.NewRequestWithContext(ctx, http.MethodPut, "/", nil)
	if lease != nil {
		r.Header.Set(fence.HeaderName, lease.Name())
		r.Header.Set(fence.HeaderFence, fmt.Sprint(lease.Fence()))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// status fails the test unless the response has it.
func status(t *testing.T, resp *http.Response, want int) {
	t.Helper()
	if resp.StatusCode != want {
		body, _ := io.ReadAll(resp.Body)
		t.Errorf("status %d, want %d: %s", resp.StatusCode, want, body)
	}
}

// done is a handler that says which token it saw.
var done = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	lease, _ := fence.FromContext(r.Context())
	fmt.Fprint(w, lease.Fence())
})

func TestGateRefusesOlderTokens(t *testing.T) {
	t.Parallel()
	h := (&fence.Gate{}).Wrap(done)
	for _, step := range []struct{ offered, newest uint64 }{{7, 7}, {7, 7}, {6, 7}, {8, 8}, {7, 8}, {1<<53 + 1, 1<<53 + 1}, {1 << 53, 1<<53 + 1}} {
		resp := send(t.Context(), h, fence.Of("a", step.offered))
		if step.offered == step.newest {
			status(t, resp, http.StatusOK)
			if err := fence.ResponseError(resp); err != nil {
				t.Errorf("an answer was taken for a refusal: %v", err)
			}
			if body, _ := io.ReadAll(resp.Body); string(body) != fmt.Sprint(step.offered) {
				t.Errorf("the handler saw %s, want %d", body, step.offered)
			}
			continue
		}
		status(t, resp, http.StatusPreconditionFailed)
		stale(t, fence.ResponseError(resp), fence.StaleError{Name: "a", Offered: step.offered, Newest: step.newest})
	}
	status(t, send(t.Context(), h, fence.Of("b", 1)), http.StatusOK)
}

// TestGateSaysWhyItRefuses: in application/problem+json, whose body can be read
// after ResponseError too.
func TestGateSaysWhyItRefuses(t *testing.T) {
	t.Parallel()
	gate := &fence.Gate{Name: func(r *http.Request) string { return "a" }}
	h := gate.Wrap(done)
	status(t, send(t.Context(), h, fence.Of("a", 1<<60)), http.StatusOK)
	broken := (&fence.Gate{Store: brokenStore{}}).Wrap(done)
	for what, c := range map[string]struct {
		resp   *http.Response
		status int
		kind   string
		says   string
	}{
		"stale":      {send(t.Context(), h, fence.Of("a", 1<<60-1)), 412, "urn:dibs:fence:stale", "granted again"},
		"no token":   {send(t.Context(), h, nil), 428, "urn:dibs:fence:missing", fence.HeaderFence},
		"fence 0":    {send(t.Context(), h, fence.Of("a", 0)), 400, "urn:dibs:fence:invalid", "fence 0"},
		"other lock": {send(t.Context(), h, fence.Of("b", 1)), 412, "urn:dibs:fence:other-name", `guarded by "a"`},
		"no store":   {send(t.Context(), broken, fence.Of("a", 1)), 503, "urn:dibs:fence:store", "on fire"},
	} {
		status(t, c.resp, c.status)
		if err := fence.ResponseError(c.resp); (err != nil) != (what == "stale") {
			t.Errorf("%s: ResponseError says %v", what, err)
		}
		var p map[string]any
		body, _ := io.ReadAll(c.resp.Body)
		if err := json.Unmarshal(body, &p); err != nil || c.resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s %s", what, c.resp.Header.Get("Content-Type"), body)
			continue
		}
		detail, _ := p["detail"].(string)
		if p["type"] != c.kind || p["status"] != float64(c.status) || p["title"] == "" || !strings.Contains(detail, c.says) || p["outcome"] != "refused" {
			t.Errorf("%s: %s", what, body)
		}
		if what == "stale" && (p["newest"] != fmt.Sprint(1<<60) || p["offered"] != fmt.Sprint(1<<60-1) || p["name"] != "a") {
			t.Errorf("%s: %s", what, body)
		}
		if retry := c.resp.Header.Get("Retry-After"); (retry != "") != (c.status == 503) {
			t.Errorf("%s: Retry-After %q", what, retry)
		}
	}
}

type brokenStore struct{}

func (brokenStore) Raise(context.Context, string, uint64) (uint64, error) {
	return 0, errors.New("on fire")
}

// TestGateCancelsAndAwaitsOlderRequests: the newer is let in when the older's
// handler has returned, and not before.
func TestGateCancelsAndAwaitsOlderRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int64
		h := (&fence.Gate{Patience: time.Hour}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lease, _ := fence.FromContext(r.Context())
			if n := under.Add(1); n != 1 && lease.Fence() != 1 {
				t.Errorf("token %d was let in beside %d others", lease.Fence(), n-1)
			}
			defer under.Add(-1)
			if lease.Fence() == 1 {
				<-r.Context().Done()
				stale(t, context.Cause(r.Context()), fence.StaleError{Name: "a", Offered: 1, Newest: 2, Interrupted: true})
				time.Sleep(time.Minute) // winds up
			}
		}))
		var wg sync.WaitGroup
		var old [2]*http.Response
		for i := range old { // two requests of one holder go side by side
			wg.Go(func() { old[i] = send(t.Context(), h, fence.Of("a", 1)) })
		}
		synctest.Wait()
		if under.Load() != 2 {
			t.Errorf("%d of the older are under way, want 2", under.Load())
		}
		status(t, send(t.Context(), h, fence.Of("a", 2)), http.StatusOK)
		wg.Wait()
		for _, resp := range old {
			status(t, resp, http.StatusPreconditionFailed)
			stale(t, fence.ResponseError(resp), fence.StaleError{Name: "a", Offered: 1, Newest: 2, Interrupted: true})
		}
	})
}

// TestGateGivesUpOnARequestThatDoesNotEnd: it isn't let in beside it either.
func TestGateGivesUpOnARequestThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		h := (&fence.Gate{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-goOn
			fmt.Fprint(w, "ok")
		}))
		var wg sync.WaitGroup
		wg.Go(func() { // it was told to end, and wrote what it wrote
			resp := send(t.Context(), h, fence.Of("a", 1))
			status(t, resp, http.StatusOK)
			if body, _ := io.ReadAll(resp.Body); string(body) != "ok" {
				t.Errorf("the handler's answer became %q", body)
			}
		})
		synctest.Wait()
		status(t, send(t.Context(), h, fence.Of("a", 2)), http.StatusServiceUnavailable)
		resp := send(t.Context(), h, fence.Of("a", 1))
		stale(t, fence.ResponseError(resp), fence.StaleError{Name: "a", Offered: 1, Newest: 2})

		// One that waits is overtaken by a still newer one, and has not begun.
		wg.Go(func() {
			stale(t, fence.ResponseError(send(t.Context(), h, fence.Of("a", 3))), fence.StaleError{Name: "a", Offered: 3, Newest: 4})
		})
		synctest.Wait()
		wg.Go(func() { status(t, send(t.Context(), h, fence.Of("a", 4)), http.StatusOK) })
		synctest.Wait()
		// One whose client goes away while it waits is not let in.
		gone, cancel := context.WithCancel(t.Context())
		wg.Go(func() { send(gone, h, fence.Of("a", 4)) })
		synctest.Wait()
		cancel()
		close(goOn)
		wg.Wait()
	})
}

// TestGateHearsOfNewerTokensElsewhere: servers that share a store refuse what any
// of them knows to be stale.
func TestGateHearsOfNewerTokensElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var shared fence.Memory
		here := (&fence.Gate{Store: &shared}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		elsewhere := (&fence.Gate{Store: &shared}).Wrap(done)
		var wg sync.WaitGroup
		wg.Go(func() {
			stale(t, fence.ResponseError(send(t.Context(), here, fence.Of("a", 1))), fence.StaleError{Name: "a", Offered: 1, Newest: 2, Interrupted: true})
		})
		synctest.Wait()
		status(t, send(t.Context(), elsewhere, fence.Of("a", 2)), http.StatusOK)
		// The next request brings the news, whatever its own fate.
		stale(t, fence.ResponseError(send(t.Context(), here, fence.Of("a", 1))), fence.StaleError{Name: "a", Offered: 1, Newest: 2})
		wg.Wait()
	})
}

// TestGateInterruptsAHandlerThatReads: the older's client is slow or frozen in the
// middle of its body, and its handler waits for it.
func TestGateInterruptsAHandlerThatReads(t *testing.T) {
	t.Parallel()
	reading := make(chan struct{})
	h := (&fence.Gate{Patience: time.Minute}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lease, _ := fence.FromContext(r.Context()); lease.Fence() == 2 {
			return
		}
		r.Body.Read(make([]byte, 1))
		close(reading)
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Error("the body came to its end")
		}
	}))
	s := httptest.NewServer(h)
	defer s.Close()
	put := func(lease fence.Fenced, body io.Reader) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, body)
		must(t, err)
		client := http.Client{Transport: &fence.Transport{Lease: lease}}
		return client.Do(req)
	}
	slow, frozen := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		resp, err := put(fence.Of("a", 1), slow)
		if err != nil {
			return // the server may close the connection before the client reads
		}
		defer resp.Body.Close()
		stale(t, fence.ResponseError(resp), fence.StaleError{Name: "a", Offered: 1, Newest: 2, Interrupted: true})
	})
	frozen.Write([]byte("half"))
	<-reading
	resp, err := put(fence.Of("a", 2), strings.NewReader("x"))
	must(t, err)
	status(t, resp, http.StatusOK)
	resp.Body.Close()
	frozen.Close()
	wg.Wait()
}

// TestGateLeavesNothingBehind: panics included.
func TestGateLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	gate := &fence.Gate{}
	h := gate.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	func() {
		defer func() { recover() }()
		send(t.Context(), h, fence.Of("a", 1))
	}()
	status(t, send(t.Context(), gate.Wrap(done), fence.Of("a", 2)), http.StatusOK) // waits for nobody
	if n := fence.UnderWay(gate); n != 0 {
		t.Errorf("%d names are still under way", n)
	}
}

// TestGateNeverLetsOlderIn: in random interleavings, with handlers that take their
// time, no request runs beside one with another token, and tokens never decrease.
func TestGateNeverLetsOlderIn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards what follows
	notes := map[string][]uint64{}
	running := map[string]map[uint64]int{"a": {}, "b": {}, "{c}": {}}
	h := (&fence.Gate{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := fence.FromContext(r.Context())
		mu.Lock()
		notes[lease.Name()] = append(notes[lease.Name()], lease.Fence())
		beside := running[lease.Name()]
		beside[lease.Fence()]++
		if len(beside) > 1 {
			t.Errorf("%s: requests with different tokens run side by side: %v", lease.Name(), beside)
		}
		mu.Unlock()
		for range rand.IntN(5) {
			runtime.Gosched()
		}
		mu.Lock()
		defer mu.Unlock()
		if beside[lease.Fence()]--; beside[lease.Fence()] == 0 {
			delete(beside, lease.Fence())
		}
		fmt.Fprint(w, "ok")
	}))
	neverGoesBack(t, func(lease fence.Fenced) error {
		resp := send(t.Context(), h, lease)
		if err := fence.ResponseError(resp); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	}, func(name string) []uint64 { return notes[name] })
}

// slowStore lets a token through when it is told to.
type slowStore struct {
	fence.Memory
	token uint64
	goOn  chan struct{}
}

func (s *slowStore) Raise(ctx context.Context, name string, token uint64) (uint64, error) {
	if token == s.token {
		<-s.goOn
	}
	return s.Memory.Raise(ctx, name, token)
}

// TestGateRefusesOlderWhileTheStoreIsAskedAboutANewer: it could not be awaited any
// more.
func TestGateRefusesOlderWhileTheStoreIsAskedAboutANewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{token: 2, goOn: make(chan struct{})}
		h := (&fence.Gate{Store: store}).Wrap(done)
		var wg sync.WaitGroup
		wg.Go(func() { status(t, send(t.Context(), h, fence.Of("a", 2)), http.StatusOK) })
		synctest.Wait()
		stale(t, fence.ResponseError(send(t.Context(), h, fence.Of("a", 1))), fence.StaleError{Name: "a", Offered: 1, Newest: 2})
		close(store.goOn)
		wg.Wait()
	})
}
