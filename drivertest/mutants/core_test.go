package mutants_test

import "slices"

// coreMutants break package dibs.
var coreMutants = slices.Concat(coreLineMutants, trustMutants, releaseMutants, waitMutants, keeperMutants, closeMutants, powerMutants)

var coreLineMutants = []mutant{
	{
		law: 27, what: "a waiter that was evicted waits for ever",
		edit: edit{"wait.go", "k.removeLocked(&w.ward)\n\t\tsignal(w.wake)\n\tdefault:", "k.removeLocked(&w.ward)\n\tdefault:"},
		more: []edit{{"wait.go", "d := set.Poll - rand.N(set.Poll/4+1)", "d := set.Poll*1000 - rand.N(set.Poll/4+1)"}},
	},
	{
		law: 27, what: "a moved place is renewed without a pause",
		edit: edit{"wait.go", "w.ward.refreshed(asked)\n\t\tif held.Place == w.place {", "if held.Place == w.place {\n\t\t\tw.ward.refreshed(asked)"},
	},
	{
		law: 28, what: "a waiter asks, then subscribes",
		edit: edit{"wait.go", "if w.subscribe(ctx) {\n\t\t\t\tbreak // and ask again\n\t\t\t}", "w.subscribe(ctx)"},
	},
	{
		law: 28, what: "hopes for a signal alone",
		edit: edit{"wait.go", "d := set.Poll - rand.N(set.Poll/4+1)", "d := set.Poll*1000 - rand.N(set.Poll/4+1)"},
	},
	{
		law: 28, what: "polls past RetryAfter",
		edit: edit{"wait.go", "if retryAfter > 0 {", "if false {"},
	},
	{
		law: 29, what: "a waiter trusts from hearing",
		edit: edit{"wait.go", "return w.take(*s.Grant, asked), true", "return w.take(*s.Grant, max(asked, w.attempt.client.core.clock.now())), true"},
	},
	{
		law: 29, what: "a waiter trusts any push",
		edit: edit{"wait.go", "case s.Place != place:", "case s.Place != place && s.Grant == nil:"},
	},
	{
		law: 29, what: "a waiter whose asks fail hears nothing",
		edit: edit{"wait.go", "if lease := w.sleep(ctx, backoff(try, 10*time.Millisecond, time.Second)); lease != nil {\n\t\t\t\treturn lease, nil\n\t\t\t}", "w.attempt.client.core.pause(ctx, backoff(try, 10*time.Millisecond, time.Second))"},
	},
	{
		law: 29, what: "what was handed over is not renewed at once",
		edit: edit{"wait.go", "c.keeper.adopt(&l.ward, now)", "c.keeper.adopt(&l.ward, asked+w.claim.TTL/3)"},
	},
	{
		law: 29, what: "what was heard too late is given back while it is asked for",
		edit: edit{"wait.go", "< g.TTL/8 {\n", "< g.TTL/8 {\n\t\ta.takeBack()\n"},
	},
	{
		law: 30, what: "a waiter in a crowd asks twice",
		edit: edit{"crowd.go", "return c.seat(name).Load() > 0", "return false"},
	},
	{
		law: 30, what: "a crowd is for ever",
		edit: edit{"crowd.go", "seat.CompareAndSwap(n, n-1)", "_ = n"},
	},
	{
		law: 30, what: "a call for each place",
		edit: edit{"keeper.go", "n := k.core.facts.MaxBatch", "n := 1"},
	},
}

var trustMutants = []mutant{
	{
		law: 31, what: "trusts a grant from the reply",
		edit: edit{"acquire.go", "return a.lease(g, a.asked, ", "return a.lease(g, c.clock.now(), "},
	},
	{
		law: 31, what: "trusts a proof from the reply",
		edit: edit{"keeper.go", "trustedUntil(asked, p.TTL)", "trustedUntil(now, p.TTL)"},
	},
	{
		law: 31, what: "trusts for the whole TTL",
		edit: edit{"trust.go", "return asked + ttl - drift(ttl)", "return asked + ttl"},
	},
	{
		law: 32, what: "waits for the call",
		edit: edit{"keeper.go", "k.calls.Go(func() { k.renew(b, now) })", "k.renew(b, now)"},
	},
	{
		law: 33, what: "goes by the monotonic clock alone",
		edit: edit{"clock.go", "return max(passed, boot) + 1", "return passed + 1"},
	},
	{
		law: 33, what: "sleeps until the next claim is due",
		edit: edit{"keeper.go", "sleep = min(max(k.next-now, 0), time.Second)", "sleep = max(k.next-now, 0)"},
	},
	{
		law: 34, what: "the first error ends it",
		edit: edit{"keeper.go", "k.retryLocked(w, now, p.Err)", "k.removeLocked(w)\n\t\ttell = func() { w.owner.refusedBy(p.Err) }"},
	},
	{
		law: 34, what: "an unknown answer extends it",
		edit: edit{"keeper.go", "k.retryLocked(w, now, p.Err)", "w.owner.(*Lease).believe(trustedUntil(asked, w.claim.TTL))\n\t\tk.retryLocked(w, now, p.Err)"},
	},
	{
		law: 34, what: "an unknown answer extends it, and the torture convicts",
		edit: edit{"keeper.go", "k.retryLocked(w, now, p.Err)", "w.owner.(*Lease).believe(trustedUntil(asked, w.claim.TTL))\n\t\tk.retryLocked(w, now, p.Err)"},
		run:  "^TestConformance$/^torture$",
	},
	{
		law: 34, what: "a refusal is retried",
		edit: edit{"keeper.go", "case driver.Certain(p.Err):\n\t\tk.removeLocked(w)", "case false:\n\t\tk.removeLocked(w)"},
	},
	{
		law: 34, what: "retries at one pace",
		edit: edit{"keeper.go", "w.due = now + max(left/6, w.claim.TTL/200, time.Millisecond)", "w.due = now + w.claim.TTL/9 + 0*left"},
	},
	{
		law: 35, what: "a late yes revives",
		edit: edit{"keeper.go", "\tcase w.slot == 0:\n", `	case w.slot == 0:
		if l, ok := w.owner.(*Lease); ok && p.Err == nil {
			l.believe(trustedUntil(asked, p.TTL))
			l.mu.Lock()
			l.cause = nil
			l.mu.Unlock()
		}
`},
	},
	{
		law: 36, what: "returns a grant without trust",
		edit: edit{"acquire.go", "case c.clock.now() >= time.Duration(l.trust.Load()):", "case false:"},
	},
	{
		law: 36, what: "keeps a grant without trust",
		edit: edit{"acquire.go", "a.takeBack()\n\t\treturn nil, errLate", "return nil, errLate"},
	},
	{
		law: 37, what: "an ask outlives its caller",
		edit: edit{"acquire.go", "c.minder.Begin(ctx, ", "c.minder.Begin(context.WithoutCancel(ctx), "},
	},
	{
		law: 37, what: "cleans up on the caller's ctx",
		edit: edit{"core.go", "ctx = context.WithoutCancel(ctx)", "_ = ctx"},
	},
	{
		law: 37, what: "a cancelled wait leaves its place",
		edit: edit{"wait.go", "w.takeBack()\n\t\t\treturn nil, a.gaveUp(cause, last)", "return nil, a.gaveUp(cause, last)"},
	},
	{
		law: 37, what: "an ask that was cut off is the last word",
		edit: edit{"wait.go", "(cause == nil || driver.Certain(err))", "(cause == nil || true)"},
	},
	{
		law: 37, what: "a cancelled ask leaves its claim",
		edit: edit{"acquire.go", "a.takeBack()\n\t}\n\treturn nil, a.fail(err)", "}\n\treturn nil, a.fail(err)"},
	},
	{
		law: 40, what: "reads the ctx's end",
		edit: edit{"lease.go", "now >= time.Duration(l.trust.Load()) {\n\t\tl.core.keeper.expire(l, now)", "now < 0 {\n\t\tl.core.keeper.expire(l, now)"},
	},
}

var releaseMutants = []mutant{
	{
		law: 38, what: "one release",
		edit: edit{"undo.go", "again := now < d.haunt || !clear && now < d.until", "again := false"},
	},
	{
		law: 38, what: "a clear answer ends it",
		edit: edit{"undo.go", "again := now < d.haunt || !clear && now < d.until", "again := !clear && now < d.until"},
	},
	{
		law: 38, what: "takes back by the old token",
		edit: edit{"undo.go", "d.claim.Token = 0 ", ""},
	},
	{
		law: 38, what: "takes the first instant for never",
		edit: edit{"clock.go", "return time.Since(k.start) + 1", "return time.Since(k.start)"},
	},
	{
		law: 38, what: "a lease's own late asks are forgotten",
		edit: edit{"release.go", "c.undoer.addLate(l.claim, l.tainted)", ""},
	},
	{
		law: 39, what: "releases beside a renewal",
		edit: edit{"keeper.go", "k.removeLocked(w)\n\tif !w.busy {", "k.removeLocked(w)\n\tif true {"},
	},
	{
		law: 39, what: "its own lost release is somebody else's",
		edit: edit{"release.go", "case errors.Is(err, ErrNotHeld) && try > 0 && c.clock.now() < trusted:", "case false:"},
	},
	{
		law: 39, what: "not mine is released",
		edit: edit{"release.go", "errors.Is(err, ErrNotHeld) && try > 0 && c.clock", "errors.Is(err, ErrNotHeld) && c.clock"},
	},
	{
		law: 39, what: "a release's error hides the work's",
		edit: edit{"locker.go", "_ = lease.Release(ctx)", "err = lease.Release(ctx)"},
	},
}

var waitMutants = []mutant{
	{
		law: 41, what: "waits for ever",
		edit: edit{"wait.go", "if a.client.set.StoreDown == FailDown && ", "if false && "},
	},
	{
		law: 41, what: "gives up at the first silence",
		edit: edit{"wait.go", " && c.clock.now()-a.clear >= a.claim.TTL", ""},
	},
	{
		law: 41, what: "does not heed StoreDown",
		edit: edit{"wait.go", "a.client.set.StoreDown == FailDown && ", ""},
	},
	{
		law: 41, what: "a store that is down looks like contention",
		edit: edit{"wait.go", "return nil, a.down(err)", "return nil, a.gaveUp(err, &HeldError{Name: a.claim.Name})"},
	},
	{
		law: 41, what: "silence counts from the beginning",
		edit: edit{"acquire.go", "a.clear = c.clock.now()", ""},
	},
}

var keeperMutants = []mutant{
	{
		law: 42, what: "one call at a time",
		edit: edit{"keeper.go", "k.calls.Go(func() { k.renew(b, now) })", "k.renew(b, now)"},
	},
	{
		law: 42, what: "a call for each claim",
		edit: edit{"keeper.go", "n := k.core.facts.MaxBatch", "n := 1"},
	},
	{
		law: 42, what: "nothing is gathered",
		edit: edit{"keeper.go", "if w.key() > now+soon {", "if w.key() > now {"},
	},
	{
		law: 42, what: "batches know no bound",
		edit: edit{"keeper.go", "n := k.core.facts.MaxBatch", "n := 1 << 30"},
	},
	{
		law: 42, what: "renewals know no time-out",
		edit: edit{"keeper.go", "context.WithTimeout(k.ctx, timeout)", "context.WithTimeout(k.ctx, timeout*4)"},
	},
}

var closeMutants = []mutant{
	{
		law: 43, what: "leaks a place",
		edit: edit{"wait.go", "w.takeBack()\n\t\t\treturn nil, a.gaveUp(cause, last)", "return nil, a.gaveUp(cause, last)"},
	},
	{
		law: 43, what: "leaks a claim",
		edit: edit{"core.go", "c.undoer.add(l.claim, l.tainted)", ""},
	},
	{
		law: 43, what: "does not wait for what is late",
		edit: edit{"undo.go", "u.ending && len(u.debts) == 0", "u.ending"},
	},
	{
		law: 43, what: "says nothing of what is left",
		edit: edit{"core.go", "left := c.undoer.stop(ctx); left != nil", "left := c.undoer.stop(ctx); false"},
	},
	{
		law: 43, what: "leaves the store open",
		edit: edit{"core.go", "if err := c.store.Close(); err != nil {", "if err := error(nil); err != nil {"},
	},
	{
		law: 43, what: "leaks a goroutine",
		edit:  edit{"keeper.go", "\tclose(k.quit)\n", ""},
		hangs: true,
	},
}

var powerMutants = []mutant{
	{
		law: 44, what: "a power is looked up through the wrapper",
		edit: edit{"drivertest/wrap.go", "ww, wb, wf := &wrappedWatcher{watch, around}", "ww, wb, wf := watch"},
	},
	{
		law: 44, what: "has a power by default",
		edit: edit{"drivertest/wrap.go", "case isWatcher && isBatcher && isFeed:", "case true:"},
	},
	{
		law: 44, what: "a call goes around the link",
		edit: edit{"drivertest/wrap.go", "return w.around(ctx, Call{Op: OpRevoke, Arg: r}, func(ctx context.Context) Answer {", "return func(f func(context.Context) Answer) Answer { return f(ctx) }(func(ctx context.Context) Answer {"},
	},
}
