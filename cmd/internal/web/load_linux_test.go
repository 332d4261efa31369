package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/web"
)

// TestTortureRequests: 200 a second of all kinds are answered by 2xx, 409 and 429
// alone, and leave nothing behind in the process. DIBS_TORTURE_FOR says for how
// long.
func TestTortureRequests(t *testing.T) {
	long := 2 * time.Second
	if text := os.Getenv("DIBS_TORTURE_FOR"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }))
	t.Cleanup(target.Close)
	request := "http: { url: '" + target.URL + "' }, history: { max_runs: 20, keep: 10m }"
	s := newSite(t, t.TempDir(), `  'skip/{x}': { `+request+` }
  'line/{x}': { on_conflict: queue, queue: { max: 5 }, `+request+` }
  'wait/{x}': { on_conflict: wait, wait: { max: 5 }, `+request+` }
  limited: { rate_limit: { runs: 5, per: 1s }, `+request+` }
`, web.Open())
	paths := []string{"/run/skip/a", "/run/skip/b", "/run/line/a", "/run/wait/a", "/run/limited"}
	var mu sync.Mutex
	codes := make(map[int]int)
	load := func(long time.Duration) {
		var wg sync.WaitGroup
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		seats := make(chan struct{}, 100)
		for i, end := 0, time.Now().Add(long); time.Now().Before(end); i++ {
			<-tick.C
			seats <- struct{}{}
			wg.Go(func() {
				defer func() { <-seats }()
				resp, err := http.Post(s.srv.URL+paths[i%len(paths)], "", nil)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				codes[resp.StatusCode]++
			})
		}
		wg.Wait()
	}
	// What is left in use after the runs are over.
	usage := func() (goroutines int, heap uint64) {
		until(t, "all runs are over", func() bool {
			all, err := s.run.Book().Instances(t.Context())
			return err == nil && len(all) == 1 && len(all[0].Active) == 0 && len(all[0].Queues) == 0
		})
		http.DefaultClient.CloseIdleConnections()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapInuse
	}
	load(long / 4) // connections and buffers are made
	goroutines, heap := usage()
	load(long)
	after, heapAfter := usage()
	// The last of them are still on their way out.
	for deadline := time.Now().Add(time.Minute); (after > goroutines+20 || heapAfter > heap+16<<20) && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
		after, heapAfter = usage()
	}
	if after > goroutines+20 {
		t.Errorf("%d goroutines became %d", goroutines, after)
	}
	if heapAfter > heap+16<<20 {
		t.Errorf("%d MiB in use became %d", heap>>20, heapAfter>>20)
	}
	for code := range codes {
		if code != 202 && code != 409 && code != 429 {
			t.Errorf("answers: %v", codes)
		}
	}
	if codes[202] == 0 || codes[409] == 0 || codes[429] == 0 {
		t.Errorf("answers: %v", codes)
	}
	t.Log(fmt.Sprint(maps.Collect(maps.All(codes))), goroutines, after, heap>>20, heapAfter>>20)
}
