package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/otelhooks"
)

// Traces send spans to a collector, if the environment names one. The zero value
// sends none.
type Traces struct {
	provider *sdktrace.TracerProvider
	hooks    dibs.Hooks
}

// NewTraces reads the variables that OpenTelemetry defines: spans go by OTLP over
// HTTP to OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, and
// nowhere without them unless OTEL_TRACES_EXPORTER=otlp says so. An error is no
// reason to end: the Traces that come with it send nothing. What goes wrong later
// is logged, the same once in five minutes.
func NewTraces(ctx context.Context, version string, log *slog.Logger) (*Traces, error) {
	if on, err := tracing(os.Getenv); !on || err != nil {
		return &Traces{}, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return &Traces{}, err
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "dibs"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // the last word
	if err != nil {
		log.Warn("the spans' resource isn't whole", "err", err)
	}
	otel.SetErrorHandler(&complaints{log: log})
	t := &Traces{provider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}
	t.hooks, err = otelhooks.New(otelhooks.Config{Tracers: t.provider, Meters: noopmetric.NewMeterProvider(), Names: true})
	return t, err
}

// tracing tells whether the environment wants spans to be sent.
func tracing(env func(string) string) (bool, error) {
	exporter := env("OTEL_TRACES_EXPORTER")
	endpoint := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	protocol := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	switch {
	case strings.EqualFold(env("OTEL_SDK_DISABLED"), "true"), exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; want otlp or none", exporter)
	case protocol != "http/protobuf":
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; want http/protobuf, and the collector's port for it, 4318 as a rule", protocol)
	}
	return true, nil
}

// Provider makes the spans; without a collector, ones that go nowhere.
func (t *Traces) Provider() trace.TracerProvider {
	if t.provider == nil {
		return noop.NewTracerProvider()
	}
	return t.provider
}

// Hooks make spans of what becomes of locks.
func (t *Traces) Hooks() dibs.Hooks { return t.hooks }

// Close sends what is left.
func (t *Traces) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// complaints log what goes wrong with spans, but not again and again.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex // guards what follows
	last string
	at   time.Time
}

// Handle logs err.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err.Error() == c.last && time.Since(c.at) < 5*time.Minute {
		return
	}
	c.last, c.at = err.Error(), time.Now()
	c.log.Warn("spans are not sent", "err", err)
}
