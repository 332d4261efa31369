package otelhooks

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dibslock/dibs"
)

// A reporter turns what hooks are told into metrics and spans.
type reporter struct {
	meters
	tracer trace.Tracer
	names  bool
	holds  sync.Map // *dibs.Lease to *life: the leases that live
}

// A wait is an acquire under way. The hooks of one acquire are called one after
// another.
type wait struct {
	caller context.Context // whose span is the parent
	span   trace.Span
	counts bool // among the waiters
}

type waitKey struct{}

// A life is that of a lease.
type life struct {
	span  trace.Span
	store string
	since time.Time
}

// store is the one label that all metrics have.
func store(name string) attribute.KeyValue { return attribute.String("store", name) }

func labels(kv ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(kv...))
}

// about is what spans carry.
func (r *reporter) about(info dibs.AcquireInfo) trace.SpanStartEventOption {
	kv := []attribute.KeyValue{
		attribute.String("dibs.store", info.Store),
		attribute.String("dibs.mode", info.Mode),
	}
	if r.names {
		kv = append(kv, attribute.String("dibs.name", info.Name))
	}
	return trace.WithAttributes(kv...)
}

func (r *reporter) acquiring(ctx context.Context, info dibs.AcquireInfo) context.Context {
	w := &wait{caller: ctx}
	ctx, w.span = r.tracer.Start(ctx, "dibs.acquire", r.about(info), trace.WithAttributes(attribute.Bool("dibs.wait", info.Wait)))
	return context.WithValue(ctx, waitKey{}, w)
}

func (r *reporter) waiting(ctx context.Context, info dibs.AcquireInfo, refusal *dibs.HeldError) {
	w, ok := ctx.Value(waitKey{}).(*wait)
	if !ok {
		return
	}
	if !w.counts {
		w.counts = true
		r.waiters.Add(ctx, 1, labels(store(info.Store)))
	}
	w.span.AddEvent("refused", trace.WithAttributes(
		attribute.String("dibs.place", strconv.FormatUint(refusal.Place, 10)),
		attribute.Float64("dibs.retry_after", refusal.RetryAfter.Seconds())))
}

func (r *reporter) retrying(ctx context.Context, _ dibs.AcquireInfo, err error) {
	if w, ok := ctx.Value(waitKey{}).(*wait); ok {
		w.span.RecordError(err)
	}
}

func (r *reporter) acquired(ctx context.Context, info dibs.AcquireInfo, lease *dibs.Lease, err error) {
	outcome := outcomeOf(err)
	by := labels(store(info.Store), attribute.String("outcome", outcome))
	r.acquires.Add(ctx, 1, by)
	r.wait.Record(ctx, info.Waited.Seconds(), by)
	w, ok := ctx.Value(waitKey{}).(*wait)
	if !ok {
		return
	}
	if w.counts {
		r.waiters.Add(ctx, -1, labels(store(info.Store)))
	}
	if lease != nil {
		r.begin(w, info, lease)
	}
	w.span.SetAttributes(attribute.String("dibs.outcome", outcome))
	if outcome != granted && outcome != held && outcome != gaveUp {
		w.span.RecordError(err)
		w.span.SetStatus(codes.Error, outcome)
	}
	w.span.End()
}

// begin notes a lease that begins to live.
func (r *reporter) begin(w *wait, info dibs.AcquireInfo, lease *dibs.Lease) {
	at := labels(store(info.Store))
	if lease.TookOver() {
		r.takeovers.Add(w.caller, 1, at)
	}
	r.held.Add(w.caller, 1, at)
	h := &life{store: info.Store, since: time.Now()}
	// Tokens are text: numbers in traces lose digits.
	_, h.span = r.tracer.Start(w.caller, "dibs.hold", r.about(info), trace.WithAttributes(
		attribute.String("dibs.fence", strconv.FormatUint(lease.Fence(), 10)),
		attribute.Bool("dibs.took_over", lease.TookOver())))
	r.holds.Store(lease, h)
	if lost, ok := errors.AsType[*dibs.LostError](lease.Check()); ok {
		r.end(lease, lost) // before it was noted
	}
}

func (r *reporter) lost(lease *dibs.Lease, err *dibs.LostError) { r.end(lease, err) }

func (r *reporter) released(lease *dibs.Lease, err error) {
	if lost, ok := errors.AsType[*dibs.LostError](err); ok {
		r.end(lease, lost)
		return
	}
	r.end(lease, nil)
}

// end notes the end of a lease, once.
func (r *reporter) end(lease *dibs.Lease, lost *dibs.LostError) {
	found, ok := r.holds.LoadAndDelete(lease)
	if !ok {
		return
	}
	h := found.(*life)
	ctx := trace.ContextWithSpan(context.Background(), h.span)
	at, outcome, lived := store(h.store), "released", time.Since(h.since)
	if lost != nil {
		outcome, lived = "lost", lost.Held
		r.meters.lost.Add(ctx, 1, labels(at, attribute.String("reason", string(lost.Reason))))
		if lost.Reason == dibs.RevokedAway {
			r.forced.Add(ctx, 1, labels(at))
		}
		h.span.RecordError(lost)
		h.span.SetStatus(codes.Error, "lost: "+string(lost.Reason))
	}
	r.held.Add(ctx, -1, labels(at))
	r.hold.Record(ctx, lived.Seconds(), labels(at, attribute.String("outcome", outcome)))
	h.span.End()
}

func (r *reporter) renewed(info dibs.RenewInfo) {
	ctx, at := context.Background(), store(info.Store)
	claims := info.Leases + info.Places
	for outcome, n := range map[string]int{"answered": claims - info.Failed, "unknown": info.Failed} {
		if n > 0 {
			r.renewals.Add(ctx, int64(n), labels(at, attribute.String("outcome", outcome)))
		}
	}
	if info.Leases > 0 {
		r.margin.Record(ctx, info.Margin.Seconds(), labels(at))
	}
}

func (r *reporter) requested(info dibs.RequestInfo) {
	ctx, at := context.Background(), store(info.Store)
	up := int64(0)
	if info.Clear() {
		up = 1
	}
	r.up.Record(ctx, up, labels(at))
	r.requests.Record(ctx, info.Took.Seconds(), labels(at, attribute.String("op", info.Op), attribute.Bool("answered", info.Clear())))
}
