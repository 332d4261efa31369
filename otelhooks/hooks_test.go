package otelhooks_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/memlock"
	"github.com/dibslock/dibs/otelhooks"
)

// A rig is a client whose hooks report to readers of the test's.
type rig struct {
	t       *testing.T
	client  *dibs.Client
	store   *faulty
	metrics *sdkmetric.ManualReader
	spans   *tracetest.SpanRecorder
	tracer  *sdktrace.TracerProvider
}

// faulty is a store that answers what the test says.
type faulty struct {
	driver.Store
	acquire, renew atomic.Pointer[error]
}

func (f *faulty) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := f.acquire.Load(); err != nil {
		return driver.Grant{}, *err
	}
	return f.Store.Acquire(ctx, c)
}

func (f *faulty) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if err := f.renew.Load(); err != nil {
		return nil, *err
	}
	return f.Store.Renew(ctx, cs)
}

func (f *faulty) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	return f.Store.(driver.Batcher).AcquireAll(ctx, cs)
}

func (f *faulty) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	return f.Store.(driver.Watcher).Watch(ctx, c)
}

func (f *faulty) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return f.Store.(driver.Lister).List(ctx, prefix)
}

func (f *faulty) Revoke(ctx context.Context, r driver.Revocation) error {
	return f.Store.(driver.Revoker).Revoke(ctx, r)
}

const ttl = 30 * time.Second

func newRig(t *testing.T, cfg otelhooks.Config, set dibs.Settings) *rig {
	t.Helper()
	r := &rig{
		t: t, store: &faulty{Store: memlock.New(memlock.Options{})},
		metrics: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder(),
	}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	cfg.Tracers = r.tracer
	if cfg.Meters == nil {
		cfg.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.metrics))
	}
	hooks, err := otelhooks.New(cfg)
	must(t, err)
	set.TTL = ttl
	r.client, err = dibs.New(r.store, &dibs.Options{Settings: set, Hooks: hooks})
	must(t, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) lock(name string) *dibs.Lease {
	r.t.Helper()
	lease, err := r.client.Mutex(name).Lock(r.t.Context())
	must(r.t, err)
	return lease
}

// read returns the metrics as a text each: name{label,...}, and of histograms the
// count.
func (r *rig) read() map[string]float64 {
	r.t.Helper()
	synctest.Wait() // a lease's context ends before its hook has run
	var all metricdata.ResourceMetrics
	must(r.t, r.metrics.Collect(context.Background(), &all))
	out := map[string]float64{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					out[key(m.Name, p)] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					out[key(m.Name, p)] = float64(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					out[keyOf(m.Name, p.Attributes.Encoded(labelsAsText{}))] = float64(p.Count)
				}
			}
		}
	}
	return out
}

func key(name string, p metricdata.DataPoint[int64]) string {
	return keyOf(name, p.Attributes.Encoded(labelsAsText{}))
}

func keyOf(name, labels string) string { return name + "{" + labels + "}" }

// want fails the test unless the metrics have these values; 0 may be absent.
func (r *rig) want(want map[string]float64) {
	r.t.Helper()
	got := r.read()
	for k, v := range want {
		if got[k] != v {
			r.t.Errorf("%s = %v, want %v; of\n%s", k, got[k], v, strings.Join(slices.Sorted(maps.Keys(got)), "\n"))
		}
	}
}

// in runs a test in a bubble, in which minutes cost nothing.
func in(t *testing.T, cfg otelhooks.Config, set dibs.Settings, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cfg, set)
		defer func() { must(t, r.client.Close(context.Background())) }()
		test(t, r)
	})
}

func TestGrantedAndReleased(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{}, func(t *testing.T, r *rig) {
		lease := r.lock("a")
		time.Sleep(2 * time.Minute)
		r.want(map[string]float64{
			"dibs.lock.acquire{outcome=granted,store=mem}":                    1,
			"dibs.lock.wait{outcome=granted,store=mem}":                       1,
			"dibs.locks.held{store=mem}":                                      1,
			"dibs.lock.takeover{store=mem}":                                   0,
			"dibs.lock.hold{outcome=released,store=mem}":                      0,
			"dibs.store.up{store=mem}":                                        1,
			"dibs.store.request.duration{answered=true,op=acquire,store=mem}": 1,
			"dibs.store.request.duration{answered=true,op=release,store=mem}": 0,
		})
		renewals := r.read()["dibs.lock.renew{outcome=answered,store=mem}"]
		if renewals < 10 || r.read()["dibs.lock.renew.margin{store=mem}"] != renewals || r.read()["dibs.store.request.duration{answered=true,op=renew,store=mem}"] != renewals {
			t.Errorf("%v renewals in four TTLs, and as many margins and requests: %v", renewals, r.read())
		}
		must(t, lease.Release(t.Context()))
		r.want(map[string]float64{
			"dibs.locks.held{store=mem}":                                      0,
			"dibs.lock.hold{outcome=released,store=mem}":                      1,
			"dibs.store.request.duration{answered=true,op=release,store=mem}": 1,
		})
		if got := r.sum("dibs.lock.hold"); got != 120 {
			t.Errorf("held for %v s, want 120", got)
		}
		// A renewal is sent when a third of the TTL, 30 s, is over, or up to a 24th
		// later; a hundredth of it is never trusted.
		if margin := r.sum("dibs.lock.renew.margin") / renewals; margin < 18.4 || margin > 20 {
			t.Errorf("a margin of %v s on average, want two thirds of the TTL", margin)
		}
	})
}

// sum is the sum of a histogram.
func (r *rig) sum(name string) (sum float64) {
	var all metricdata.ResourceMetrics
	must(r.t, r.metrics.Collect(context.Background(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
			for _, p := range h.DataPoints {
				sum += p.Sum
			}
		}
	}
	return sum
}

func TestHeldAndWaiting(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{}, func(t *testing.T, r *rig) {
		lease := r.lock("a")
		if _, err := r.client.Mutex("a").TryLock(t.Context()); !errors.Is(err, dibs.ErrHeld) {
			t.Fatal(err)
		}
		r.want(map[string]float64{"dibs.lock.acquire{outcome=held,store=mem}": 1, "dibs.lock.waiters{store=mem}": 0})

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got := make(chan *dibs.Lease)
		go func() { // ends with the test
			impatient, err := r.client.Mutex("a").Lock(ctx)
			if impatient != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, %v", impatient, err)
			}
			got <- nil
		}()
		go func() { got <- r.lock("a") }() // ends with the test
		synctest.Wait()
		r.want(map[string]float64{"dibs.lock.waiters{store=mem}": 2})
		<-got
		r.want(map[string]float64{"dibs.lock.waiters{store=mem}": 1, "dibs.lock.acquire{outcome=gave_up,store=mem}": 1})
		must(t, lease.Release(t.Context()))
		must(t, (<-got).Release(t.Context()))
		r.want(map[string]float64{
			"dibs.lock.waiters{store=mem}":                 0,
			"dibs.lock.acquire{outcome=granted,store=mem}": 2,
			"dibs.lock.wait{outcome=gave_up,store=mem}":    1,
		})
		if got := r.sum("dibs.lock.wait"); got != 120 {
			t.Errorf("waited for %v s in all, want a minute each", got)
		}
	})
}

// TestDownAndTakenOver: the store does not answer for a while, so a lease expires;
// the next is a takeover.
func TestDownAndTakenOver(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{}, func(t *testing.T, r *rig) {
		lease := r.lock("a")
		down := errors.New("connection refused")
		r.store.renew.Store(&down)
		<-lease.Context().Done()
		r.want(map[string]float64{
			"dibs.lock.lost{reason=expired,store=mem}": 1,
			"dibs.lock.hold{outcome=lost,store=mem}":   1,
			"dibs.locks.held{store=mem}":               0,
			"dibs.lock.forced{store=mem}":              0,
			"dibs.store.up{store=mem}":                 0,
		})
		got := r.read()
		if got["dibs.lock.renew{outcome=unknown,store=mem}"] == 0 || got["dibs.lock.renew{outcome=answered,store=mem}"] != 0 ||
			got["dibs.store.request.duration{answered=false,op=renew,store=mem}"] == 0 {
			t.Errorf("renewals: %v", got)
		}
		r.store.acquire.Store(&down)
		if _, err := r.client.Mutex("b").TryLock(t.Context()); !errors.Is(err, dibs.ErrUnknown) {
			t.Error(err)
		}
		r.store.acquire.Store(nil)
		r.store.renew.Store(nil)
		next := r.lock("a") // when the TTL is over
		if !next.TookOver() {
			t.Fatal("no takeover")
		}
		_ = lease.Release(t.Context()) // a lost one's release counts nothing
		r.want(map[string]float64{
			"dibs.lock.acquire{outcome=unknown,store=mem}": 1,
			"dibs.lock.takeover{store=mem}":                1,
			"dibs.lock.hold{outcome=lost,store=mem}":       1,
			"dibs.lock.hold{outcome=released,store=mem}":   0,
			"dibs.locks.held{store=mem}":                   1,
			"dibs.store.up{store=mem}":                     1,
		})
		must(t, next.Release(t.Context()))
	})
}

func TestForced(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{}, func(t *testing.T, r *rig) {
		lease := r.lock("a")
		must(t, r.client.Revoke(t.Context(), dibs.Revocation{Name: "a", Token: lease.Token()}))
		<-lease.Context().Done()
		r.want(map[string]float64{"dibs.lock.forced{store=mem}": 1, "dibs.lock.lost{reason=revoked,store=mem}": 1, "dibs.locks.held{store=mem}": 0})
	})
}

// TestSeveralNames: each counts, and goes with the others.
func TestSeveralNames(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{}, func(t *testing.T, r *rig) {
		for _, end := range []func(*dibs.Lease){
			func(l *dibs.Lease) { must(t, l.Release(t.Context())) },
			func(l *dibs.Lease) {
				for h, err := range r.client.Holders(t.Context(), "a") {
					must(t, err)
					must(t, r.client.Revoke(t.Context(), dibs.Revocation{Name: "a", Token: h.Token}))
				}
				<-l.Context().Done()
			},
		} {
			lease, err := r.client.All(r.client.Mutex("a"), r.client.Mutex("b")).TryLock(t.Context())
			must(t, err)
			r.want(map[string]float64{"dibs.locks.held{store=mem}": 2})
			end(lease)
			r.want(map[string]float64{"dibs.locks.held{store=mem}": 0})
		}
		r.want(map[string]float64{
			"dibs.lock.acquire{outcome=granted,store=mem}":                    4,
			"dibs.store.request.duration{answered=true,op=acquire,store=mem}": 2,
			"dibs.lock.hold{outcome=released,store=mem}":                      2,
			"dibs.lock.lost{reason=revoked,store=mem}":                        1,
			"dibs.lock.lost{reason=together,store=mem}":                       1,
			"dibs.lock.forced{store=mem}":                                     1,
		})
	})
}

func TestHeldForTooLong(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{MaxHold: time.Minute}, func(t *testing.T, r *rig) {
		<-r.lock("a").Context().Done()
		r.want(map[string]float64{"dibs.lock.lost{reason=max-hold,store=mem}": 1})
	})
}

func TestRejectedAndClosed(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{}, func(t *testing.T, r *rig) {
		no := driver.Rejectedf("a", "no permission")
		r.store.acquire.Store(&no)
		if _, err := r.client.Mutex("a").TryLock(t.Context()); !errors.Is(err, dibs.ErrRejected) {
			t.Error(err)
		}
		r.want(map[string]float64{"dibs.lock.acquire{outcome=rejected,store=mem}": 1, "dibs.store.up{store=mem}": 1})
		r.store.acquire.Store(nil)
		r.lock("a")
		waits := make(chan error)
		go func() { // ends with the client
			_, err := r.client.Mutex("a").Lock(t.Context())
			waits <- err
		}()
		synctest.Wait()
		go r.client.Close(context.Background())
		if err := <-waits; !errors.Is(err, dibs.ErrClosed) {
			t.Error(err)
		}
		must(t, r.client.Close(context.Background()))
		r.want(map[string]float64{
			"dibs.lock.acquire{outcome=closed,store=mem}": 1,
			"dibs.lock.waiters{store=mem}":                0,
			"dibs.lock.lost{reason=closed,store=mem}":     1,
			"dibs.locks.held{store=mem}":                  0,
		})
	})
}

// TestNamesAreNoLabels: a hundred names are as many series as one, and no label
// says what is locked or by whom.
func TestNamesAreNoLabels(t *testing.T) {
	in(t, otelhooks.Config{Names: true}, dibs.Settings{Note: "ann@db1"}, func(t *testing.T, r *rig) {
		once := 0
		for i := range 100 {
			must(t, r.lock(fmt.Sprintf("secret-%d", i)).Release(t.Context()))
			if i == 0 {
				once = len(r.read())
			}
		}
		got := r.read()
		if len(got) != once || once == 0 {
			t.Errorf("%d series for one name, %d for 100", once, len(got))
		}
		for k := range got {
			if strings.Contains(k, "secret") || strings.Contains(k, "ann") || strings.Contains(k, "db1") {
				t.Errorf("%s says too much", k)
			}
		}
	})
}
