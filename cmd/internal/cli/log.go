package cli

import (
	"context"
	"io"
	"log/slog"

	"github.com/dibslock/dibs"
)

// logger writes a line a fact with -v, and nothing without.
func logger(w io.Writer, verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// logHooks writes what the library does.
func logHooks(log *slog.Logger) dibs.Hooks {
	return dibs.Hooks{
		Waiting: func(_ context.Context, i dibs.AcquireInfo, held *dibs.HeldError) {
			log.Debug("waiting", "key", i.Name, "waited", i.Waited, "place", held.Place, "retry_after", held.RetryAfter, "why", held)
		},
		Retrying: func(_ context.Context, i dibs.AcquireInfo, err error) {
			log.Warn("no clear answer, asking again", "key", i.Name, "waited", i.Waited, "err", err)
		},
		Acquired: func(_ context.Context, i dibs.AcquireInfo, lease *dibs.Lease, err error) {
			if err != nil {
				log.Debug("not acquired", "key", i.Name, "mode", i.Mode, "waited", i.Waited, "err", err)
				return
			}
			log.Info("acquired", "key", i.Name, "mode", i.Mode, "waited", i.Waited, "fence", lease.Fence(), "token", lease.Token(), "took_over", lease.TookOver())
		},
		Renewed: func(i dibs.RenewInfo) {
			level := slog.LevelDebug
			if i.Failed > 0 {
				level = slog.LevelWarn
			}
			facts := []any{"leases", i.Leases, "places", i.Places, "failed", i.Failed}
			if i.Leases > 0 { // places have no trust to be left
				facts = append(facts, "margin", i.Margin)
			}
			log.Log(context.Background(), level, "renewed", append(facts, "took", i.Took, "err", i.Err)...)
		},
		Lost: func(lease *dibs.Lease, err *dibs.LostError) {
			log.Error("lost", "key", lease.Name(), "fence", lease.Fence(), "reason", string(err.Reason), "err", err)
		},
		Released: func(lease *dibs.Lease, err error) {
			if err != nil {
				log.Warn("released", "key", lease.Name(), "fence", lease.Fence(), "err", err)
				return
			}
			log.Info("released", "key", lease.Name(), "fence", lease.Fence())
		},
	}
}
