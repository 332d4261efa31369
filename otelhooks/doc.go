// Package otelhooks tells OpenTelemetry what the locks of a dibs client do:
//
//	hooks, err := otelhooks.New(otelhooks.Config{})
//	...
//	c, err := dibs.Open(ctx, url, &dibs.Options{Hooks: hooks})
//
// # Metrics
//
// Their names are those that Prometheus shows; in OpenTelemetry dots stand for the
// first underscores, and the unit and _total are no part of the name.
//
//	dibs_lock_acquire_total{store,outcome}         Lock and TryLock that ended: granted, held, gave_up,
//	                                               unknown, rejected, closed
//	dibs_lock_wait_seconds{store,outcome}          how long they took
//	dibs_lock_hold_seconds{store,outcome}          how long leases lived that have ended: released, lost
//	dibs_locks_held{store}                         leases that live
//	dibs_lock_waiters{store}                       Locks that were refused and wait
//	dibs_lock_renew_total{store,outcome}           renewals, a claim each: answered, unknown
//	dibs_lock_renew_margin_seconds{store}          the least trust that was left when a renewal was sent
//	dibs_lock_lost_total{store,reason}             expired, taken, revoked, max-hold, closed, together
//	dibs_lock_takeover_total{store}                grants whose holder before had expired or died
//	dibs_lock_forced_total{store}                  leases that an operator took away
//	dibs_store_up{store}                           1 if the latest request was answered, 0 if not
//	dibs_store_request_duration_seconds{store,op,answered}   calls of the store
//
// No metric has a label for what is locked, by whom, or where: a million names are
// a dozen series.
//
// # Traces
//
// A span dibs.acquire for each Lock and TryLock, with an event for each refusal and
// each unclear answer, and a span dibs.hold for the life of the lease, an error if
// it was lost. Both are children of the span in the caller's ctx. They carry the
// lock's name only if [Config.Names] says so.
package otelhooks
