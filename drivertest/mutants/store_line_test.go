package mutants_test

// lineMutants break L23 to L30 and L45: the line, signals and batches.
var lineMutants = []mutant{
	{
		law: 23, what: "loses its place with each ask",
		edit: edit{acquireGo, "|| e.Place != 0 ||", "||"},
	},
	{
		law: 23, what: "a place per ask",
		edit: edit{acquireGo, "|| e.Place != 0 ||", "||"},
		more: []edit{{acquireGo, "\tn.leave(c.ID) // if it is dead\n", ""}},
	},
	{
		law: 23, what: "last come first served",
		edit: edit{acquireGo, "\t\tn.line = append(n.line, p)\n", "\t\tn.line = slices.Insert(n.line, 0, p)\n"},
	},
	{
		law: 23, what: "readers starve a writer",
		edit: edit{acquireGo, "(c.Barging || !n", "(c.Barging || c.Mode() == driver.Shared || !n"},
	},
	{
		law: 23, what: "lets in the last one in line",
		edit: edit{nameGo, "\t\tswitch p := n.line[0]; {\n", "\t\tswitch p := n.line[len(n.line)-1]; {\n"},
	},
	{
		law: 23, what: "gives up the place of one that asks without patience",
		edit: edit{acquireGo, "\tif p != nil {\n\t\tp.refresh(c, now)\n", "\tif p != nil && c.Patience == 0 {\n\t\tn.leave(c.ID)\n\t} else if p != nil {\n\t\tp.refresh(c, now)\n"},
	},
	{
		law: 24, what: "overtakes",
		edit: edit{acquireGo, "(c.Barging || !n.behind(c, now))", "(true || !n.behind(c, now))"},
	},
	{
		law: 24, what: "finds the name free and lets nobody in",
		edit: edit{acquireGo, "\tn.promote(now)\n\tif h := n.granted(c.ID); h != nil {\n", "\tif h := n.granted(c.ID); h != nil {\n"},
	},
	{
		law: 24, what: "does not let barge",
		edit: edit{acquireGo, "(c.Barging || !n", "(!n"},
	},
	{
		law: 24, what: "barging passes holders",
		edit: edit{acquireGo, "n.room(c) && (c.Barging", "(c.Barging || n.room(c)) && (c.Barging"},
	},
	{
		law: 26, what: "only looks at the first place",
		edit: edit{acquireGo, "\t\tif p.ID == c.ID {\n\t\t\tbreak", "\t\tif p.ID == c.ID || len(ps) == 0 && p != n.line[0] {\n\t\t\tbreak"},
	},
	{
		law: 23, what: "one in line passes those before it",
		edit: edit{acquireGo, "\t\tif p.ID == c.ID {\n\t\t\tbreak\n\t\t}\n", "\t\tif n.waiting(c.ID, now) != nil {\n\t\t\tbreak\n\t\t}\n"},
	},
	{
		law: 25, what: "wakes everyone",
		edit: edit{nameGo, "\t\t\tn.m.signalLocked(p, driver.Signal{Place: p.number, Grant: &g})\n", "\t\t\tn.m.signalLocked(p, driver.Signal{Place: p.number, Grant: &g})\n\t\t\tfor _, o := range n.line {\n\t\t\t\tn.m.signalLocked(o, driver.Signal{})\n\t\t\t}\n"},
	},
	{
		law: 25, what: "lets only one in",
		edit: edit{nameGo, "\t\t\tn.m.signalLocked(p, driver.Signal{Place: p.number, Grant: &g})\n", "\t\t\tn.m.signalLocked(p, driver.Signal{Place: p.number, Grant: &g})\n\t\t\treturn\n"},
	},
	{
		law: 25, what: "a place that leaves lets nobody in",
		edit: edit{releaseGo, "\t\tn.leave(c.ID)\n", "\t\tn.leave(c.ID)\n\t\treturn nil\n"},
	},
	{
		law: 25, what: "a release lets nobody in",
		edit: edit{releaseGo, "\tn.promote(now)\n\treturn nil", "\treturn nil"},
	},
	{
		law: 25, what: "hands over for the whole TTL",
		edit: edit{nameGo, "\t\t\th.until = now.Add(min(n.m.facts.HandOver, p.until.Sub(now)))\n", ""},
	},
	{
		law: 25, what: "hands over for longer than the patience",
		edit: edit{nameGo, "min(n.m.facts.HandOver, p.until.Sub(now))", "n.m.facts.HandOver"},
	},
	{
		law: 25, what: "lets in whoever fits, not the first ones",
		edit: edit{nameGo, "\t\tdefault:\n\t\t\treturn\n\t\t}\n\t}\n}\n\n// nudge", "\t\tdefault:\n\t\t\tif i := slices.IndexFunc(n.line, func(o *place) bool { return n.room(o.Claim) }); i > 0 {\n\t\t\t\tn.line[0], n.line[i] = n.line[i], n.line[0]\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\treturn\n\t\t}\n\t}\n}\n\n// nudge"},
	},
	{
		law: 25, what: "a release does not look at what has ended",
		edit: edit{releaseGo, "\tn.end(now)\n", ""},
	},
	{
		law: 24, what: "a barging claim keeps its place",
		edit: edit{acquireGo, "\tn.leave(c.ID)\n\th := n.grant(c, s, now)\n", "\th := n.grant(c, s, now)\n"},
	},
	{
		law: 26, what: "hands over to the dead",
		edit: edit{nameGo, "\t\tcase !n.live(p, now):\n", "\t\tcase false:\n"},
	},
	{
		law: 26, what: "stops at its bound and tells nobody",
		edit: edit{nameGo, "\t\t\tn.nudge(now)\n", ""},
	},
	{
		law: 26, what: "asking does not refresh",
		edit: edit{acquireGo, "\t\tp.refresh(c, now)\n", "\t\t_ = p\n"},
	},
	{
		law: 26, what: "shortens patience",
		edit: edit{acquireGo, "if until := now.Add(c.Patience); until.After(p.until) {", "if until := now.Add(c.Patience); true {"},
	},
	{
		law: 26, what: "refreshes a dead place",
		edit: edit{nameGo, "p.ID == id && n.live(p, now)", "p.ID == id"},
	},
	{
		law: 26, what: "tells the next place, which is dead",
		edit: edit{nameGo, "\t\tif n.live(p, now) {\n\t\t\tn.m.signalLocked(", "\t\tif true {\n\t\t\tn.m.signalLocked("},
	},
	{
		law: 26, what: "lists the dead",
		edit: edit{listGo, "\t\t\tif n.live(p, now) {\n", "\t\t\tif true {\n"},
	},
	{
		law: 26, what: "removes every dead place in one call",
		edit: edit{nameGo, "\t\t\tdead++\n", ""},
	},
	{
		law: 27, what: "revives a dead place",
		edit: edit{nameGo, "p.ID == id && n.live(p, now)", "p.ID == id"},
	},
	{
		law: 27, what: "an evicted waiter waits for ever",
		edit: edit{acquireGo, "\tn.leave(c.ID) // if it is dead\n", "\tif slices.ContainsFunc(n.line, func(p *place) bool { return p.ID == c.ID }) {\n\t\treturn err\n\t}\n"},
	},
	{
		law: 27, what: "a hand-over never lapses",
		edit: edit{nameGo, "\tfor !now.Before(h.until) {\n", "\tfor !now.Before(h.until) && h.state != driver.Handed {\n"},
	},
	{
		law: 27, what: "a lapsed hand-over is no death",
		edit: edit{nameGo, "\tn.tookOver = true\n", "\tn.tookOver = h.state != driver.Handed\n"},
	},
	{
		law: 27, what: "comes back at the front",
		edit: edit{acquireGo, "\t\tn.line = append(n.line, p)\n", "\t\tif slices.ContainsFunc(n.line, func(o *place) bool { return o.number > 0 && !n.live(o, now) }) || n.tookOver {\n\t\t\tn.line = slices.Insert(n.line, 0, p)\n\t\t} else {\n\t\t\tn.line = append(n.line, p)\n\t\t}\n"},
		more: []edit{{acquireGo, "\tn.leave(c.ID) // if it is dead\n", "\tdefer n.leave(\"\")\n"}},
	},
	{
		law: 28, what: "loses a signal that nobody reads yet",
		edit: edit{watchGo, "\tg.ch <- s\n", "\tselect {\n\tcase g.ch <- s:\n\tdefault:\n\t}\n"},
		more: []edit{{watchGo, "make(chan driver.Signal, 1)", "make(chan driver.Signal)"}},
	},
	{
		law: 28, what: "one subscription a name",
		edit: edit{watchGo, "sub := subscriber{c.Name, c.ID}", `sub := subscriber{c.Name, ""}`},
		more: []edit{{watchGo, "subscriber{p.Name, p.ID}", `subscriber{p.Name, ""}`}},
	},
	{
		law: 28, what: "hears only who is in line already",
		edit: edit{watchGo, "\ts.m.subs[sub], s.subs[sub] = g, g\n", "\tif n := s.m.names[c.Name]; n != nil && len(n.line) > 0 {\n\t\ts.m.subs[sub], s.subs[sub] = g, g\n\t}\n"},
	},
	{
		law: 28, what: "a stopped subscription goes on",
		edit: edit{watchGo, "\t\tdelete(s.m.subs, sub)\n", ""},
	},
	{
		law: 28, what: "a ctx that ended does not stop it",
		edit: edit{watchGo, "\tunbind := context.AfterFunc(ctx, unsubscribe)\n", "\tunbind := func() bool { return ctx != nil }\n"},
	},
	{
		law: 28, what: "signals only the client that lets in",
		edit: edit{watchGo, "\tif g := m.subs[subscriber{p.Name, p.ID}]; g != nil {\n", "\tif g := m.subs[subscriber{p.Name, p.ID}]; g != nil && len(p.client.subs) > 1 {\n"},
	},
	{
		law: 28, what: "hands over and tells nobody",
		edit: edit{nameGo, "\t\t\tn.m.signalLocked(p, driver.Signal{Place: p.number, Grant: &g})\n", "\t\t\t_ = g\n"},
	},
	{
		law: 29, what: "names another place",
		edit: edit{nameGo, "Place: p.number, Grant: &g", "Place: p.number + 1, Grant: &g"},
	},
	{
		law: 29, what: "promises the whole TTL",
		edit: edit{nameGo, "g := h.grant(h.until.Sub(now))", "g := h.grant(h.TTL)"},
	},
	{
		law: 29, what: "carries another token",
		edit: edit{nameGo, "\t\t\tg := h.grant(h.until.Sub(now))\n", "\t\t\tg := h.grant(h.until.Sub(now))\n\t\t\tg.Token--\n"},
	},
	{
		law: 29, what: "hands over for half of what it says",
		edit: edit{nameGo, "\t\t\tg := h.grant(h.until.Sub(now))\n", "\t\t\tg := h.grant(h.until.Sub(now))\n\t\t\th.until = now.Add(h.until.Sub(now) / 2)\n"},
	},
	{
		law: 29, what: "carries no fence",
		edit: edit{nameGo, "\t\t\tg := h.grant(h.until.Sub(now))\n", "\t\t\tg := h.grant(h.until.Sub(now))\n\t\t\tg.Fence = 0\n"},
	},
	{
		law: 29, what: "promises more than the patience",
		edit: edit{nameGo, "g := h.grant(h.until.Sub(now))", "g := h.grant(n.m.facts.HandOver)"},
	},
	{
		law: 30, what: "every ask wakes every waiter",
		edit: edit{acquireGo, "\tn.end(now)\n\th, p :=", "\tn.end(now)\n\tfor _, o := range n.line {\n\t\tn.m.signalLocked(o, driver.Signal{})\n\t}\n\th, p :="},
		run:  waitingIsCheap,
	},
	{
		law: 30, what: "a place that leaves wakes everyone",
		edit: edit{releaseGo, "\t\tn.leave(c.ID)\n", "\t\tn.leave(c.ID)\n\t\tfor _, o := range n.line {\n\t\t\tn.m.signalLocked(o, driver.Signal{Place: o.number})\n\t\t}\n"},
	},
	{
		law: 30, what: "refreshes one place a call",
		edit: edit{renewGo, "\t\tproofs[i] = s.m.renewLocked(c, now)\n", "\t\tif i > 0 && c.Token == 0 {\n\t\t\tproofs[i].Err = &driver.HeldError{Name: c.Name}\n\t\t\tcontinue\n\t\t}\n\t\tproofs[i] = s.m.renewLocked(c, now)\n"},
	},
	{
		law: 45, what: "keeps what it got",
		edit: edit{acquireGo, "\t\tif err := n.judge(c, now); err != nil {\n\t\t\treturn nil, err\n\t\t}\n", "\t\tif err := n.judge(c, now); err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tn.take(c, s, now)\n"},
	},
	{
		law: 45, what: "takes places",
		edit: edit{acquireGo, "\t\tif err := n.judge(c, now); err != nil {\n\t\t\treturn nil, err\n\t\t}\n", "\t\tif err := n.judge(c, now); err != nil {\n\t\t\treturn nil, n.queue(c, s, now, err)\n\t\t}\n"},
	},
	{
		law: 45, what: "takes one name twice",
		edit: edit{acquireGo, "\t\tif names[c.Name] {\n", "\t\tif false {\n"},
	},
	{
		law: 45, what: "mixes up the grants",
		edit: edit{acquireGo, "\t\tgs = append(gs, s.m.nameLocked(c.Name).take(c, s, now))\n", "\t\tgs = append([]driver.Grant{s.m.nameLocked(c.Name).take(c, s, now)}, gs...)\n"},
	},
	{
		law: 45, what: "grants some",
		edit: edit{acquireGo, "\t\tif err := n.judge(c, now); err != nil {\n\t\t\treturn nil, err\n\t\t}\n", "\t\tif err := n.judge(c, now); err != nil && c.Name == cs[0].Name {\n\t\t\treturn nil, err\n\t\t}\n"},
	},
	{
		law: 45, what: "changes the caller's claims",
		edit: edit{acquireGo, "\tcs = slices.Clone(cs)\n", ""},
	},
}
