// Package telemetry counts what a runner does, for Prometheus. No series has a
// key, a run, a host or a process as a label: their number depends on the
// configuration alone.
package telemetry

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/runner"
)

// Metrics are a runner's. They are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	store    string

	acquire  *prometheus.CounterVec
	wait     prometheus.Histogram
	hold     prometheus.Histogram
	held     prometheus.Gauge
	waiters  prometheus.Gauge
	renew    *prometheus.CounterVec
	margin   prometheus.Histogram
	lost     *prometheus.CounterVec
	takeover prometheus.Counter
	forced   prometheus.Counter
	request  prometheus.Histogram
	skew     prometheus.Gauge

	runs     *prometheus.CounterVec
	duration *prometheus.HistogramVec
	skipped  *prometheus.CounterVec
	success  *prometheus.GaugeVec
	next     *prometheus.GaugeVec
	limited  *prometheus.CounterVec

	since sync.Map // *dibs.Lease to when it was granted
}

var (
	short = prometheus.ExponentialBuckets(0.001, 4, 8) // 1 ms to 16 s
	long  = prometheus.ExponentialBuckets(0.05, 4, 10) // 50 ms to 3.6 h
)

// New returns metrics for a runner over a store of that driver.
func New(store string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), store: store}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(g)
		return g
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	one := func(h *prometheus.HistogramVec) prometheus.Histogram {
		return h.WithLabelValues().(prometheus.Histogram)
	}

	m.acquire = counter("dibs_lock_acquire_total", "Locks asked for, by how that ended: granted, held, error.", "store", "outcome")
	m.wait = one(histogram("dibs_lock_wait_seconds", "How long an acquire took.", short))
	m.hold = one(histogram("dibs_lock_hold_seconds", "How long locks were held.", long))
	m.held = gauge("dibs_locks_held", "Locks that this instance holds.").WithLabelValues()
	m.waiters = gauge("dibs_lock_waiters", "Acquires of this instance that wait.").WithLabelValues()
	m.renew = counter("dibs_lock_renew_total", "Renewal calls, by how they ended: ok, failed.", "outcome")
	m.margin = one(histogram("dibs_lock_renew_margin_seconds", "The least trust that was left when a renewal was sent.", short))
	m.lost = counter("dibs_lock_lost_total", "Locks that ended before their holder let go.", "reason")
	m.takeover = counter("dibs_lock_takeover_total", "Grants after a holder that expired or died.").WithLabelValues()
	m.forced = counter("dibs_lock_forced_total", "Locks of this instance that an operator took away.").WithLabelValues()
	m.request = one(histogram("dibs_store_request_duration_seconds", "How long the store took to answer.", short))
	m.skew = gauge("dibs_clock_skew_seconds", "How far this clock is ahead of the store's.").WithLabelValues()

	m.runs = counter("dibs_job_runs_total", "Runs that are over, by their state.", "job", "outcome")
	m.duration = histogram("dibs_job_run_duration_seconds", "How long runs took.", long, "job")
	m.skipped = counter("dibs_job_skipped_total", "Triggers that were refused, and why.", "job", "reason")
	m.success = gauge("dibs_job_last_success_timestamp_seconds", "When a run of the job last succeeded on this instance.", "job")
	m.next = gauge("dibs_job_next_run_timestamp_seconds", "When the job is due next.", "job")
	m.limited = counter("dibs_rate_limited_total", "Triggers that were refused by the job's rate limit.", "job")
	return m
}

// Up makes the store's state a metric: ready returns nil while it answers.
func (m *Metrics) Up(ready func() error) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dibs_store_up", Help: "1 while the store answers."}, func() float64 {
		if err := ready(); err != nil && !errors.Is(err, runner.ErrDraining) {
			return 0
		}
		return 1
	}))
}

// Handler answers with all of them.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Registry has all of them.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Observer counts what becomes of jobs.
func (m *Metrics) Observer() runner.Observer {
	return runner.Observer{
		Ended: func(job string, state book.State, took time.Duration) {
			m.runs.WithLabelValues(job, string(state)).Inc()
			if state == book.Missed {
				return
			}
			m.duration.WithLabelValues(job).Observe(took.Seconds())
			if state == book.Succeeded {
				m.success.WithLabelValues(job).SetToCurrentTime()
			}
		},
		Skipped: func(job, reason string) { m.skipped.WithLabelValues(job, reason).Inc() },
		Limited: func(job string) { m.limited.WithLabelValues(job).Inc() },
		Next:    func(job string, at time.Time) { m.next.WithLabelValues(job).Set(float64(at.UnixMilli()) / 1000) },
		Skew:    func(d time.Duration) { m.skew.Set(d.Seconds()) },
		Request: func(d time.Duration) { m.request.Observe(d.Seconds()) },
	}
}

type waitKey struct{}

// Hooks count what becomes of locks.
func (m *Metrics) Hooks() dibs.Hooks {
	return dibs.Hooks{
		Acquiring: func(ctx context.Context, _ dibs.AcquireInfo) context.Context {
			return context.WithValue(ctx, waitKey{}, new(bool))
		},
		Waiting: func(ctx context.Context, _ dibs.AcquireInfo, _ *dibs.HeldError) {
			if waits, ok := ctx.Value(waitKey{}).(*bool); ok && !*waits {
				*waits = true
				m.waiters.Inc()
			}
		},
		Acquired: func(ctx context.Context, info dibs.AcquireInfo, lease *dibs.Lease, err error) {
			if waits, ok := ctx.Value(waitKey{}).(*bool); ok && *waits {
				m.waiters.Dec()
			}
			m.wait.Observe(info.Waited.Seconds())
			outcome := "error"
			switch {
			case err == nil:
				outcome = "granted"
				m.held.Inc()
				m.since.Store(lease, time.Now())
				if lease.TookOver() {
					m.takeover.Inc()
				}
			case errors.Is(err, dibs.ErrHeld):
				outcome = "held"
			}
			m.acquire.WithLabelValues(m.store, outcome).Inc()
		},
		Renewed: func(info dibs.RenewInfo) {
			outcome := "ok"
			if info.Failed > 0 || info.Err != nil {
				outcome = "failed"
			}
			m.renew.WithLabelValues(outcome).Inc()
			m.margin.Observe(max(info.Margin, 0).Seconds())
		},
		Requested: func(info dibs.RequestInfo) { m.request.Observe(info.Took.Seconds()) },
		Lost: func(lease *dibs.Lease, err *dibs.LostError) {
			m.lost.WithLabelValues(string(err.Reason)).Inc()
			if err.Reason == dibs.RevokedAway {
				m.forced.Inc()
			}
			m.end(lease)
		},
		Released: func(lease *dibs.Lease, _ error) { m.end(lease) },
	}
}

// end counts the end of a lease, once.
func (m *Metrics) end(lease *dibs.Lease) {
	if at, ok := m.since.LoadAndDelete(lease); ok {
		m.held.Dec()
		m.hold.Observe(time.Since(at.(time.Time)).Seconds())
	}
}
