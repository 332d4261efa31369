package otelhooks

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dibslock/dibs"
)

// Config says where to. The zero value is good.
type Config struct {
	Meters  metric.MeterProvider // nil: the global one
	Tracers trace.TracerProvider // nil: the global one
	// Names has spans carry what is locked, as dibs.name. Names may be many, and may
	// be personal data. Metrics never carry them.
	Names bool
}

// scope is the name of the instrumentation.
const scope = "github.com/dibslock/dibs/otelhooks"

// New returns hooks that report to the providers of cfg. One such value may serve
// several clients: it then counts them together, apart by store. The error is a
// provider's that can't make an instrument.
func New(cfg Config) (dibs.Hooks, error) {
	if cfg.Meters == nil {
		cfg.Meters = otel.GetMeterProvider()
	}
	if cfg.Tracers == nil {
		cfg.Tracers = otel.GetTracerProvider()
	}
	m, err := newMeters(cfg.Meters.Meter(scope))
	if err != nil {
		return dibs.Hooks{}, err
	}
	r := &reporter{meters: m, tracer: cfg.Tracers.Tracer(scope), names: cfg.Names}
	return dibs.Hooks{
		Acquiring: r.acquiring,
		Waiting:   r.waiting,
		Retrying:  r.retrying,
		Acquired:  r.acquired,
		Renewed:   r.renewed,
		Lost:      r.lost,
		Released:  r.released,
		Requested: r.requested,
	}, nil
}
