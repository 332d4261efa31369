package otelhooks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/otelhooks"
)

// labelsAsText writes labels as a=1,b=2.
type labelsAsText struct{}

func (labelsAsText) ID() attribute.EncoderID { return attribute.EncoderID{} }

func (labelsAsText) Encode(it attribute.Iterator) (text string) {
	for it.Next() {
		if text != "" {
			text += ","
		}
		text += string(it.Attribute().Key) + "=" + it.Attribute().Value.String()
	}
	return text
}

// attrs are a span's attributes.
func attrs(s sdktrace.ReadOnlySpan) map[string]string {
	m := map[string]string{}
	for _, kv := range s.Attributes() {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

func TestSpans(t *testing.T) {
	for _, names := range []bool{true, false} {
		t.Run(fmt.Sprintf("names=%v", names), func(t *testing.T) {
			in(t, otelhooks.Config{Names: names}, dibs.Settings{}, func(t *testing.T, r *rig) {
				ctx, parent := r.tracer.Tracer("test").Start(t.Context(), "job")
				lease, err := r.client.Mutex("a").Lock(ctx)
				must(t, err)
				_, err = r.client.Mutex("a").TryLock(ctx)
				if !errors.Is(err, dibs.ErrHeld) {
					t.Error(err)
				}
				fence := fmt.Sprint(lease.Fence())
				must(t, lease.Release(ctx))
				parent.End()

				spans := r.spans.Ended()
				if len(spans) != 4 {
					t.Fatalf("%d spans, want acquire, acquire, hold, job", len(spans))
				}
				for i, want := range []struct {
					name  string
					attrs map[string]string
				}{
					{"dibs.acquire", map[string]string{"dibs.outcome": "granted", "dibs.wait": "true"}},
					{"dibs.acquire", map[string]string{"dibs.outcome": "held", "dibs.wait": "false"}},
					{"dibs.hold", map[string]string{"dibs.fence": fence, "dibs.took_over": "false"}},
				} {
					s := spans[i]
					want.attrs["dibs.store"], want.attrs["dibs.mode"] = "mem", "exclusive"
					if names {
						want.attrs["dibs.name"] = "a"
					}
					got := attrs(s)
					if s.Name() != want.name || fmt.Sprint(got) != fmt.Sprint(want.attrs) || s.Status().Code != codes.Unset {
						t.Errorf("span %d: %s %v %v, want %v", i, s.Name(), got, s.Status(), want)
					}
					if s.Parent().SpanID() != parent.SpanContext().SpanID() {
						t.Errorf("span %d is not a child of the caller's", i)
					}
				}
			})
		})
	}
}

func TestSpansOfTrouble(t *testing.T) {
	in(t, otelhooks.Config{}, dibs.Settings{}, func(t *testing.T, r *rig) {
		lease := r.lock("a")
		waited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := r.client.Mutex("a").Lock(waited); err == nil {
			t.Error("granted twice")
		}
		down := errors.New("connection refused")
		r.store.renew.Store(&down)
		<-lease.Context().Done()
		r.store.acquire.Store(&down)
		if _, err := r.client.Mutex("b").Lock(t.Context()); !errors.Is(err, dibs.ErrUnknown) {
			t.Error(err)
		}
		r.store.acquire.Store(nil)
		r.store.renew.Store(nil)

		spans := r.spans.Ended()
		if len(spans) != 4 {
			t.Fatalf("%d spans, want 4", len(spans))
		}
		gaveUp, hold, unknown := spans[1], spans[2], spans[3]
		if attrs(gaveUp)["dibs.outcome"] != "gave_up" || len(gaveUp.Events()) == 0 || gaveUp.Events()[0].Name != "refused" {
			t.Errorf("a wait in vain: %v %v", attrs(gaveUp), gaveUp.Events())
		}
		if hold.Name() != "dibs.hold" || hold.Status().Code != codes.Error || hold.Status().Description != "lost: expired" {
			t.Errorf("a lease that was lost: %s %v", hold.Name(), hold.Status())
		}
		if attrs(unknown)["dibs.outcome"] != "unknown" || unknown.Status().Code != codes.Error || len(unknown.Events()) < 2 {
			t.Errorf("a store that is down: %v %v %d events", attrs(unknown), unknown.Status(), len(unknown.Events()))
		}
	})
}
