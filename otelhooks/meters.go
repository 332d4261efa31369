package otelhooks

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// meters are the instruments.
type meters struct {
	acquires  metric.Int64Counter
	wait      metric.Float64Histogram
	hold      metric.Float64Histogram
	held      metric.Int64UpDownCounter
	waiters   metric.Int64UpDownCounter
	renewals  metric.Int64Counter
	margin    metric.Float64Histogram
	lost      metric.Int64Counter
	takeovers metric.Int64Counter
	forced    metric.Int64Counter
	up        metric.Int64Gauge
	requests  metric.Float64Histogram
}

// The bounds of histograms, in seconds: a wait can take a millisecond or an hour.
var (
	spans = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
	calls = metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
)

// A maker makes instruments and collects the errors.
type maker struct {
	metric.Meter
	errs []error
}

func newMeters(m metric.Meter) (meters, error) {
	k := &maker{Meter: m}
	made := meters{
		acquires:  k.counter("dibs.lock.acquire", "{acquire}", "Locks and TryLocks that ended"),
		wait:      k.histogram("dibs.lock.wait", "How long they took", spans),
		hold:      k.histogram("dibs.lock.hold", "How long leases lived that have ended", spans),
		held:      k.upDown("dibs.locks.held", "{lock}", "Leases that live"),
		waiters:   k.upDown("dibs.lock.waiters", "{waiter}", "Locks that were refused and wait"),
		renewals:  k.counter("dibs.lock.renew", "{renewal}", "Renewals, a claim each"),
		margin:    k.histogram("dibs.lock.renew.margin", "The least trust that was left when a renewal was sent", spans),
		lost:      k.counter("dibs.lock.lost", "{lock}", "Leases whose end the holder did not ask for"),
		takeovers: k.counter("dibs.lock.takeover", "{lock}", "Grants whose holder before had expired or died"),
		forced:    k.counter("dibs.lock.forced", "{lock}", "Leases that an operator took away"),
		requests:  k.histogram("dibs.store.request.duration", "Calls of the store", calls),
	}
	var err error
	made.up, err = m.Int64Gauge("dibs.store.up", metric.WithDescription("1 if the latest request was answered, 0 if not"))
	return made, errors.Join(append(k.errs, err)...)
}

func (k *maker) counter(name, unit, about string) metric.Int64Counter {
	c, err := k.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	k.errs = append(k.errs, err)
	return c
}

func (k *maker) upDown(name, unit, about string) metric.Int64UpDownCounter {
	c, err := k.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	k.errs = append(k.errs, err)
	return c
}

func (k *maker) histogram(name, about string, bounds metric.HistogramOption) metric.Float64Histogram {
	h, err := k.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), bounds)
	k.errs = append(k.errs, err)
	return h
}
