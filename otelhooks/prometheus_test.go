package otelhooks_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/otelhooks"
)

// TestNamesInPrometheus: dashboards and alerts go by them.
func TestNamesInPrometheus(t *testing.T) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	must(t, err)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	in(t, otelhooks.Config{Meters: meters}, dibs.Settings{}, func(t *testing.T, r *rig) {
		// All that can happen, once.
		lease := r.lock("a")
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.client.Mutex("a").Lock(impatient); err == nil {
			t.Error("granted twice")
		}
		down := errors.New("connection refused")
		r.store.renew.Store(&down)
		<-lease.Context().Done()
		r.store.renew.Store(nil)
		next := r.lock("a")
		must(t, r.client.Revoke(t.Context(), dibs.Revocation{Name: "a", Token: next.Token()}))
		<-next.Context().Done()
	})
	want := []string{
		"dibs_lock_acquire_total", "dibs_lock_forced_total", "dibs_lock_hold_seconds", "dibs_lock_lost_total",
		"dibs_lock_renew_margin_seconds", "dibs_lock_renew_total", "dibs_lock_takeover_total", "dibs_lock_wait_seconds",
		"dibs_lock_waiters", "dibs_locks_held", "dibs_store_request_duration_seconds", "dibs_store_up",
	}
	got := map[string]bool{}
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		got[f.GetName()] = true
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
}
