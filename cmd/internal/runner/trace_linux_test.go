package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/runner"
)

// TestATraceGoesThroughARun: from who asked, by whichever instance does the work,
// to what the work itself does.
func TestATraceGoesThroughARun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	rec := tracetest.NewSpanRecorder()
	f.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(rec))
	for _, mode := range []string{"skip", "wait", "queue"} {
		r := f.start("  "+mode+": { on_conflict: "+mode+", retries: { max: 1, backoff: 10ms }, command: [sh, -c, 'echo $TRACEPARENT; exit 3'] }\n", 0)
		const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		a, err := f.ask(r, runner.Request{Job: mode, Trigger: "http", Trace: "00-" + trace + "-" + caller + "-01"})
		if err != nil {
			t.Fatal(err)
		}
		run := f.end(r, a.Run.ID)
		spans := make(map[string]sdktrace.ReadOnlySpan)
		f.await("its spans have ended", func() bool {
			for _, s := range rec.Ended() {
				for _, kv := range s.Attributes() {
					if kv.Value.AsString() == run.ID {
						spans[s.Name()] = s
					}
				}
			}
			return len(spans) == 2
		})
		asked, work := spans["dibs.trigger"], spans["dibs.run"]
		name := func(s sdktrace.ReadOnlySpan) string {
			return fmt.Sprintf("00-%s-%s-01", trace, s.SpanContext().SpanID())
		}
		if asked.SpanContext().TraceID().String() != trace || asked.Parent().SpanID().String() != caller {
			t.Errorf("%s: dibs.trigger is %v below %v", mode, asked.SpanContext(), asked.Parent())
		}
		if run.Trace != name(asked) || work.Parent().SpanID() != asked.SpanContext().SpanID() {
			t.Errorf("%s: dibs.run is below %v, and the record has %s; want %s", mode, work.Parent(), run.Trace, name(asked))
		}
		log, err := r.Book().Log(t.Context(), run.ID)
		if want := strings.Repeat(name(work)+"\n", 2); err != nil || string(log.Data) != want {
			t.Errorf("%s: the command has %q, want %q; %v", mode, log.Data, want, err)
		}
		if work.Status().Code != codes.Error || asked.Status().Code == codes.Error || len(work.Events()) != 1 {
			t.Errorf("%s: %v, %v, %v", mode, work.Status(), asked.Status(), work.Events())
		}
	}
}

// TestWithoutTracingATraceGoesThroughToo, as it came.
func TestWithoutTracingATraceGoesThroughToo(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := f.start("  a: { command: [sh, -c, 'echo $TRACEPARENT'] }\n", 0)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	a, err := f.ask(r, runner.Request{Job: "a", Trigger: "http", Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	run := f.end(r, a.Run.ID)
	log, err := r.Book().Log(t.Context(), run.ID)
	if err != nil || run.State != book.Succeeded || run.Trace != trace || string(log.Data) != trace+"\n" {
		t.Errorf("%+v, %q, %v", run, log.Data, err)
	}
}
