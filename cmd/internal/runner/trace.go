package runner

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/executor"
)

// A run's trace goes by its record from whoever asked for it to the instance that
// does it: a span dibs.trigger for the asking, a child dibs.run for the work, and
// the work's own spans below that. A traceparent is how a span is named outside of
// this process.

var w3c = propagation.TraceContext{}

// under returns ctx with the span of a traceparent as the parent.
func under(ctx context.Context, traceparent string) context.Context {
	return w3c.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// traceparent names the span of ctx; it is as before if there is none.
func traceparent(ctx context.Context, before string) string {
	c := propagation.MapCarrier{}
	w3c.Inject(ctx, c)
	if now := c["traceparent"]; now != "" {
		return now
	}
	return before
}

// asks begins the span of a request.
func (r *Runner) asks(ctx context.Context, q Request, lock string) (context.Context, trace.Span) {
	kind := trace.SpanKindInternal
	if q.Trigger == "http" || q.Trigger == "cli" {
		kind = trace.SpanKindServer
	}
	return r.tracer.Start(under(ctx, q.Trace), "dibs.trigger", trace.WithSpanKind(kind), trace.WithAttributes(
		attribute.String("dibs.job", q.Job), attribute.String("dibs.trigger", q.Trigger), attribute.String("dibs.name", lock)))
}

// asked ends it. A refusal is no error.
func asked(span trace.Span, a Accepted, reason string, err error) {
	defer span.End()
	outcome := "accepted"
	switch {
	case err == nil && a.Replayed:
		outcome = "replayed"
	case reason != "":
		outcome = reason
	case err != nil:
		outcome = "error"
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.SetAttributes(attribute.String("dibs.outcome", outcome), attribute.String("dibs.run", a.Run.ID))
}

// begins begins the span of a run's work.
func (r *Runner) begins(ctx context.Context, run book.Run) (context.Context, trace.Span) {
	return r.tracer.Start(under(ctx, run.Trace), "dibs.run", trace.WithAttributes(
		attribute.String("dibs.job", run.Job), attribute.String("dibs.run", run.ID), attribute.String("dibs.trigger", run.Trigger),
		attribute.String("dibs.name", run.Lock), attribute.String("dibs.fence", strconv.FormatUint(run.Fence, 10)), // text: numbers in traces lose digits
		attribute.String("dibs.instance", r.id)))
}

// repeats notes that there is another attempt.
func repeats(span trace.Span, run book.Run, result executor.Result) {
	span.AddEvent("retrying", trace.WithAttributes(attribute.Int("dibs.attempt", run.Attempt), attribute.String("dibs.reason", result.Reason)))
}

// ends ends it. What was cancelled has not failed.
func ends(span trace.Span, run book.Run, state book.State, reason string) {
	span.SetAttributes(attribute.String("dibs.state", string(state)), attribute.Int("dibs.attempt", run.Attempt))
	if state != book.Succeeded && state != book.Cancelled {
		span.SetStatus(codes.Error, reason)
	}
	span.End()
}
