package telemetry_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/telemetry"
	"github.com/dibslock/dibs/memlock"
)

// bare takes away what this process's own environment says of telemetry.
func bare(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// TestSpansGoToTheCollector that the environment names.
func TestSpansGoToTheCollector(t *testing.T) {
	bare(t)
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &req); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range req.ResourceSpans {
			service := ""
			for _, kv := range rs.Resource.Attributes {
				if kv.Key == "service.name" {
					service = kv.Value.GetStringValue()
				}
			}
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					got = append(got, service+" "+s.Name)
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	for service, want := range map[string]string{"": "dibs", "jobs": "jobs"} {
		got = nil
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
		t.Setenv("OTEL_SERVICE_NAME", service)
		traces, err := telemetry.NewTraces(t.Context(), "test", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c, err := dibs.New(memlock.New(memlock.Options{}), &dibs.Options{Hooks: traces.Hooks()})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := c.Mutex("a").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := traces.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{want + " dibs.acquire", want + " dibs.hold"}) {
			t.Errorf("the collector has %v", got)
		}
	}
}

// TestNoSpansUnlessAskedFor, and none by a protocol that isn't spoken.
func TestNoSpansUnlessAskedFor(t *testing.T) {
	for _, tt := range []struct{ env, wrong string }{
		{"", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_SDK_DISABLED=true", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_TRACES_EXPORTER=none", ""},
		{"OTEL_TRACES_EXPORTER=zipkin", "want otlp or none"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "want http/protobuf"},
	} {
		t.Run(tt.env, func(t *testing.T) {
			bare(t)
			for pair := range strings.FieldsSeq(tt.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			traces, err := telemetry.NewTraces(t.Context(), "test", slog.New(slog.DiscardHandler))
			if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%v", err)
			}
			if _, span := traces.Provider().Tracer("").Start(t.Context(), "a"); span.IsRecording() {
				t.Error("a span is recorded")
			}
			if err := traces.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWhatGoesWrongIsToldOf once, and not with each batch.
func TestWhatGoesWrongIsToldOf(t *testing.T) {
	bare(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	var log bytes.Buffer
	traces, err := telemetry.NewTraces(t.Context(), "test", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		otel.Handle(errors.New("nobody listens"))
	}
	otel.Handle(errors.New("the queue is full"))
	if err := traces.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]int{"nobody listens": 1, "the queue is full": 1} {
		if n := strings.Count(log.String(), text); n != want {
			t.Errorf("%s: told %d times: %s", text, n, log.String())
		}
	}
}
