package mutants_test

import "slices"

// primMutants break what is built from a lock.
var primMutants = slices.Concat(mutexMutants, limitMutants, onceMutants, allMutants, electionMutants, convertMutants)

// everyPrimitive is the test that each primitive excludes as a mutex does.
const everyPrimitive = "^TestConformance$/^laws$/^L1_EveryPrimitiveExcludes$"

var mutexMutants = []mutant{
	{
		law: 1, what: "a writer reads",
		edit: edit{"locker.go", "*Locker { return c.Mutex(name) }", "*Locker { return c.Reader(name) }"},
		run:  everyPrimitive,
	},
	{
		law: 1, what: "several units are one",
		edit: edit{"locker.go", "l := &Locker{client: c, name: name, units: units, capacity: capacity}", "l := &Locker{client: c, name: name, units: min(units, 1), capacity: capacity}"},
		run:  everyPrimitive,
	},
}

var limitMutants = []mutant{
	{
		law: 50, what: "a refusal uses one",
		edit: edit{"limit.go", "return nil, &LimitedError{Name: l.name, Quota: l.quota(b.full.Sub(now)), RetryAfter: over}", `value, _ := json.Marshal(bucket{FullAt: full.UnixNano()})
			_, err := l.client.core.store.(driver.Records).Put(ctx, driver.Record{Key: l.key(), Version: r.Version, Value: value, Retention: over + l.whole()})
			return nil, errors.Join(err, &LimitedError{Name: l.name, Quota: l.quota(b.full.Sub(now)), RetryAfter: over})`},
	},
	{
		law: 50, what: "asks the local clock",
		edit: edit{"limit.go", "\t\tb, err := l.bucket(r, now)\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tif b.By", "\t\tnow = time.Now()\n\t\tb, err := l.bucket(r, now)\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tif b.By"},
		more: []edit{{"limit.go", "if over := full.Sub(now) - l.whole(); over > 0 {", "if over := full.Sub(now) - l.whole(); over > 0 && r.Retention <= l.whole() {"}},
	},
	{
		law: 50, what: "a lost answer is paid twice",
		edit: edit{"limit.go", "if b.By == id {", "if false {"},
	},
	{
		law: 50, what: "the last writer wins",
		edit: edit{"book.go", "\t\tnext.Key, next.Version = b.key(), r.Version\n", "\t\tnext.Key = b.key()\n\t\tnow, _, _ := records.Get(call, b.key())\n\t\tnext.Version = now.Version\n"},
	},
	{
		law: 50, what: "gathers without bound while nobody takes",
		edit: edit{"limit.go", "\tif b.full.Before(now) {\n", "\tif r.Version == 0 {\n"},
		more: []edit{{"limit.go", "Retention: left.Reset + time.Second}", "Retention: left.Reset + time.Hour}"}},
	},
	{
		law: 50, what: "blocks for as long as the record says",
		edit: edit{"limit.go", "b.full.After(most)", "false"},
	},
	{
		law: 50, what: "RetryAfter is the whole period",
		edit: edit{"limit.go", "RetryAfter: over}", "RetryAfter: over - over + l.whole()}"},
	},
}

var onceMutants = []mutant{
	{
		law: 51, what: "takes over without the lock",
		edit: edit{"once.go", "\t\terr = o.lock.under(ctx, wait, under)\n", "\t\tif lease, e := o.lock.acquire(ctx, false); e == nil {\n\t\t\terr = under(ctx, lease)\n\t\t\t_ = lease.Release(ctx)\n\t\t} else {\n\t\t\terr = under(ctx, &Lease{core: o.client.core, client: o.client, grant: driver.Grant{Token: 1 << 40, Fence: 1}})\n\t\t}\n"},
	},
	{
		law: 51, what: "what is pending is as good as done",
		edit: edit{"once.go", "past.Status == Done {", "past.Status != Absent {"},
	},
	{
		law: 51, what: "doesn't look again under the lock",
		edit: edit{"once_run.go", "case s.Status == Done:\n\t\t\tr.past = &s\n\t\t\treturn nil, nil\n", "case s.Status == Done:\n"},
	},
	{
		law: 51, what: "runs again though it must not",
		edit: edit{"once_run.go", "case r.options.Interrupted == Refuse:", "case false:"},
	},
	{
		law: 51, what: "isn't told of the run before it",
		edit: edit{"once_run.go", "\t\t\tr.again = true\n", ""},
	},
	{
		law: 51, what: "an error is remembered",
		edit: edit{"once_run.go", "err = errors.Join(err, r.abandon(ctx))", "err = errors.Join(err, r.finish(ctx, nil))"},
	},
	{
		law: 51, what: "a panic forgets",
		edit: edit{"once_run.go", "\tresult, err = fn(ctx, Run{", "\tdefer func() {\n\t\tif !ran {\n\t\t\t_ = r.abandon(ctx)\n\t\t}\n\t}()\n\tresult, err = fn(ctx, Run{"},
	},
	{
		law: 51, what: "a stale run writes",
		edit: edit{"once_run.go", "case s.Status != Absent && !r.mine(s):", "case false:"},
		more: []edit{{"once_run.go", "Value: value, TokenName: r.lease.Name(), Token: r.lease.Token(),", "Value: value,"}},
	},
	{
		law: 51, what: "done is written on the caller's ctx",
		edit: edit{"once_run.go", "context.WithoutCancel(ctx)", "ctx"},
	},
	{
		law: 51, what: "takes any request",
		edit: edit{"once_state.go", "a != \"\" && b != \"\" && a != b", "a != b && false"},
	},
	{
		law: 51, what: "looks at the request only when it is done",
		edit: edit{"once_run.go", "\t\tcase r.matches(s) != nil:\n\t\t\treturn nil, r.matches(s)\n", ""},
	},
	{
		law: 51, what: "its own lost answer is an interrupted run",
		edit: edit{"once_run.go", "case r.mine(s): // an", "case false: // an"},
	},
	{
		law: 51, what: "two runs under one lease",
		edit: edit{"once_run.go", "case rec.Token == r.lease.Token():", "case false:"},
	},
	{
		law: 51, what: "takes another lock's word",
		edit: edit{"once_run.go", "case rec.TokenName != r.lease.Name():", "case false:"},
	},
	{
		law: 51, what: "does it again, and the torture convicts",
		edit: edit{"once_run.go", "case s.Status == Done:\n\t\t\tr.past = &s\n\t\t\treturn nil, nil\n", "case s.Status == Done && s.Left < time.Hour:\n"},
		more: []edit{{"once.go", "past.Status == Done {", "past.Status == Done && past.Left == 0 {"}},
		run:  "^TestConformance$/^torture$",
	},
	{
		law: 51, what: "keeps no result",
		edit: edit{"once_run.go", "Since: now, Result: result}", "Since: now}"},
	},
}

var allMutants = []mutant{
	{
		law: 45, what: "takes the names in the order in which they are given",
		edit: edit{"all.go", "\tslices.SortFunc(all.all, func(a, b *Locker) int { return cmp.Compare(a.name, b.name) })\n", "\tslices.SortFunc(all.all, func(a, b *Locker) int { return cmp.Compare(b.name, a.name) })\n"},
	},
	{
		law: 45, what: "doesn't use the store's batch",
		edit: edit{"all.go", "\tif !ok {\n\t\treturn nil, errors.ErrUnsupported", "\tif ok || !ok {\n\t\treturn nil, errors.ErrUnsupported"},
	},
	{
		law: 45, what: "keeps a part when it fails",
		edit: edit{"group.go", "func(p *Lease) error { return p.Forgo(ctx) }", "func(p *Lease) error { return nil }"},
	},
	{
		law: 45, what: "a part that nobody worked under is kept for its at-least-for",
		edit: edit{"group.go", "p.Forgo(ctx)", "p.Release(ctx)"},
	},
	{
		law: 45, what: "a loss of a part is the part's own affair",
		edit: edit{"lease.go", "\t\t\tg.lost(lost)\n", ""},
		more: []edit{{"lease.go", "return g.check()", "return nil"}},
	},
	{
		law: 45, what: "renews the rest after a loss",
		edit: edit{"group.go", "\t\tp.core.keeper.dismiss(&p.ward)\n\t\tp.end(&LostError{Reason: Together, Err: cause})\n", "\t\t_ = p\n"},
	},
	{
		law: 45, what: "waits on although an earlier name is lost",
		edit: edit{"all.go", "m.acquire(bound, wait)", "m.acquire(context.WithoutCancel(bound), wait)"},
	},
	{
		law: 45, what: "a wait that a loss ended says it gave up",
		edit: edit{"all.go", "\t\t\terr = lost\n", "\t\t\t_ = lost\n"},
	},
	{
		law: 45, what: "the reader of two wins",
		edit: edit{"all.go", "case mb == driver.Exclusive:\n\t\treturn b, nil", "case mb == driver.Exclusive:\n\t\treturn a, nil"},
	},
	{
		law: 45, what: "units don't add up",
		edit: edit{"all.go", "\tsum.units += b.units\n", ""},
	},
	{
		law: 45, what: "a batch's lost answer is forgotten",
		edit: edit{"all.go", "\t\t\ta.tainted = asked\n\t\t\ta.takeBack()\n", ""},
	},
	{
		law: 45, what: "remains for ever",
		edit: edit{"lease.go", "return g.remaining()", "return never"},
	},
	{
		law: 52, what: "doesn't read its ancestors",
		edit: edit{"path.go", "ls = append(ls, c.Reader(name[:i]))", "ls = append(ls[:1], c.Mutex(name))"},
	},
	{
		law: 52, what: "writes its ancestors",
		edit: edit{"path.go", "c.Reader(name[:i])", "c.Writer(name[:i])"},
	},
	{
		law: 52, what: "reads its parent alone",
		edit: edit{"path.go", "ls = append(ls, c.Reader(name[:i]))", "ls = append(ls[:1], c.Reader(name[:i]))"},
	},
	{
		law: 52, what: "takes empty nodes",
		edit: edit{"path.go", "if node == \"\" && name != \"\" {", "if node == \"\\n\" {"},
	},
	{
		law: 52, what: "a path without ancestors needs no sharing",
		edit: edit{"path.go", "f.Modes&driver.Shared == 0 {", "f.Modes&driver.Shared == 0 && name != \"a\" {"},
		run:  "^TestConformanceExclusiveOnly$/^laws$/^L52_",
	},
	{
		law: 53, what: "waits for itself", hangs: true,
		edit: edit{"nested.go", "\t\t} else if l.Name() == name && l.Check() == nil {", "\t\t} else if false {"},
	},
	{
		law: 53, what: "looks at the innermost alone", hangs: true,
		edit: edit{"nested.go", "for ; all != nil; all = all.outer {", "for ; all != nil; all = nil {"},
	},
	{
		law: 53, what: "doesn't look into All", hangs: true,
		edit: edit{"nested.go", "if p.Name() == name && p.Check() == nil {", "if p.Name() == name && false {"},
	},
	{
		law: 53, what: "holds it against an ended lease",
		edit: edit{"nested.go", "l.Name() == name && l.Check() == nil", "l.Name() == name"},
	},
	{
		law: 53, what: "refuses what fits",
		edit: edit{"acquire.go", "a.nested, a.claim.Patience = true, 0 // it may not wait", "return nil, &DeadlockError{Name: l.name, Refusal: &HeldError{}}"},
	},
	{
		law: 53, what: "leaves a place",
		edit: edit{"acquire.go", "a.nested, a.claim.Patience = true, 0 // it may not wait", "a.nested = true"},
		more: []edit{{"wait.go", "\t\t\t\tw.takeBack()\n\t\t\t\treturn nil, &DeadlockError", "\t\t\t\treturn nil, &DeadlockError"}},
	},
}

var electionMutants = []mutant{
	{
		law: 54, what: "lets go before it has stopped",
		edit: edit{"leader.go", "\t\tr.end(ErrSteppedDown)\n", "\t\tr.end(ErrSteppedDown)\n\t\t_ = r.lease.Release(ctx)\n"},
	},
	{
		law: 54, what: "goes on after its loss, and the torture convicts",
		edit: edit{"leader.go", "\t\tif r.lease.Check() == nil {\n\t\t\treturn r.lease, true", "\t\tif r.lease.Check() != ErrReleased {\n\t\t\treturn r.lease, true"},
		run:  "^TestConformance$/^torture$",
	},
	{
		law: 54, what: "Close doesn't wait for it",
		edit: edit{"election.go", "\tbound, stop := lease.Bind(ctx)\n", "\tc.calls.leave()\n\tbound, stop := lease.Bind(ctx)\n"},
		more: []edit{{"election.go", "\t\tc.calls.leave() // Close waits for fn, and then gives the lease back itself\n", ""}},
	},
	{
		law: 54, what: "isn't told that the client is closed", hangs: true,
		edit: edit{"election.go", "\t\t\tend(ErrClosed)\n", ""},
	},
	{
		law: 54, what: "a loss is the end",
		edit: edit{"election.go", "\t\treturn false, nil\n", "\t\treturn true, context.Cause(bound)\n"},
	},
	{
		law: 54, what: "a silent store is the end",
		edit: edit{"election.go", "if err != nil && !errors.Is(err, ErrUnknown) {", "if err != nil {"},
	},
	{
		law: 54, what: "reports itself after its loss",
		edit: edit{"leader.go", "\t\tif r.lease.Check() == nil {\n\t\t\treturn r.lease, true", "\t\tif true {\n\t\t\treturn r.lease, true"},
	},
	{
		law: 54, what: "believes the store about itself",
		edit: edit{"leader.go", " && !e.lost(h.Token) {", " {"},
	},
	{
		law: 54, what: "takes the end of fn for a loss", hangs: true,
		edit: edit{"election.go", "case lease.Check() == nil && cause == nil:", "case lease.Check() == nil && cause == nil && err != nil:"},
	},
	{
		law: 54, what: "who returns keeps the lock",
		edit: edit{"election.go", "\t\t_ = lease.Release(ctx)\n", "\t\tif err != nil || !over {\n\t\t\t_ = lease.Release(ctx)\n\t\t}\n"},
	},
	{
		law: 54, what: "a panic keeps the lock",
		edit: edit{"election.go", "\t\t_ = lease.Release(ctx)\n", "\t\tif err != nil || over {\n\t\t\t_ = lease.Release(ctx)\n\t\t}\n"},
	},
	{
		law: 54, what: "any holder whose name begins like it leads",
		edit: edit{"leader.go", "\t\tif h.Name != e.name { // they are ordered by name: it is listed first, or not at all\n\t\t\tbreak\n\t\t}\n", ""},
	},
	{
		law: 54, what: "tells of no change",
		edit: edit{"leader.go", "case !told || failing || h.Token != last:", "case !told || failing || h.Token > last && false:"},
	},
	{
		law: 54, what: "tells of every look",
		edit: edit{"leader.go", "case !told || failing || h.Token != last:", "case !told || failing || h.Token != last || h.Token != 0:"},
	},
}

var convertMutants = []mutant{
	{
		law: 21, what: "one that is refused is lost though the other may stand",
		edit: edit{"convert.go", "if !ok || l.conv == nil || errors.Is(err, ErrRevoked) {", "if true || !ok || l.conv == nil {"},
	},
	{
		law: 21, what: "trusts both refusals for longer",
		edit: edit{"convert.go", "\tcase driver.Certain(p.Err) && p.Err != nil:\n\t\t_, _ = v.settle(driver.Grant{}, asked, refused)\n\t\treturn true\n", ""},
	},
	{
		law: 21, what: "forgets what it got no answer to",
		edit: edit{"convert.go", "\tif v.tainted == 0 {", "\tif true {"},
	},
	{
		law: 21, what: "an unclear answer is a no",
		edit: edit{"convert.go", "\t\tif settled, err := v.settle(g, asked, err); settled {\n\t\t\treturn err\n\t\t}", "\t\tif settled, err := v.settle(g, asked, err); settled || err != nil {\n\t\t\treturn err\n\t\t}"},
	},
	{
		law: 21, what: "goes on with the old claim",
		edit: edit{"convert.go", "l.claim.ID, l.claim.Token, l.claim.Units, l.claim.Capacity = v.claim.ID, g.Token, v.claim.Units, v.claim.Capacity", "_ = g"},
	},
	{
		law: 21, what: "keeps the old fence",
		edit: edit{"convert.go", "\tl.grant = g\n", "\t_ = g\n"},
	},
	{
		law: 21, what: "a release leaves the one that came late",
		edit: edit{"release.go", "\t\tc.undoer.add(other, c.clock.now())\n", "\t\t_ = other\n"},
		more: []edit{{"convert.go", "\tif l.Check() != nil { // Close takes", "\tif false { // Close takes"}},
	},
	{
		law: 21, what: "Close leaves the one that may stand",
		edit: edit{"core.go", "\t\t\t\tc.undoer.add(other, c.clock.now())\n", "\t\t\t\t_ = other\n"},
	},
	{
		law: 21, what: "stays open for ever",
		edit: edit{"convert.go", "\t\t\tc.keeper.finish(v)\n\t\t\treturn\n", "\t\t\treturn\n"},
	},
	{
		law: 21, what: "to grow beside one that grows is only held",
		edit: edit{"convert.go", "errors.As(err, &held) && held.Deadlock:", "errors.As(err, &held) && false:"},
	},
	{
		law: 21, what: "asks a store that can't",
		edit: edit{"convert.go", "\tcase why != \"\":", "\tcase why == \"-\":"},
	},
}
