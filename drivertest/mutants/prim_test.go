package mutants_test

import "slices"

// primMutants break what is built from a lock.
var primMutants = slices.Concat(limitMutants, onceMutants)

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
		law: 51, what: "keeps no result",
		edit: edit{"once_run.go", "Since: now, Result: result}", "Since: now}"},
	},
}
