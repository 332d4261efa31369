package mutants_test

// renewMutants break L11 to L22 and L49: tokens, and how claims end.
var renewMutants = []mutant{
	{
		law: 11, what: "restarts at 1 after a release",
		edit: edit{nameGo, "\tm.mark = max(m.mark, n.last)\n", ""},
	},
	{
		law: 11, what: "lowers the high-water mark",
		edit: edit{nameGo, "m.mark = max(m.mark, n.last)", "m.mark = n.last"},
	},
	{
		law: 11, what: "one token for all readers",
		edit: edit{nameGo, "\th.Token = n.next()\n", "\tif h.Mode() != driver.Shared || n.readers == 0 {\n\t\tn.next()\n\t}\n\th.Token = n.last\n"},
	},
	{
		law: 11, what: "gives a hand-over no token of its own",
		edit: edit{nameGo, "\t\t\th.state = driver.Handed\n", "\t\t\th.state = driver.Handed\n\t\t\tn.last--\n"},
	},
	{
		law: 11, what: "writes no hand-over",
		edit: edit{nameGo, "\t\t\tn.log(driver.EventHanded, h)\n", ""},
	},
	{
		law: 11, what: "writes no expiry",
		edit: edit{nameGo, "\tn.log(driver.EventExpired, h)\n", ""},
	},
	{
		law: 11, what: "does not count events",
		edit: edit{journalGo, "\tm.seq++\n", ""},
	},
	{
		law: 11, what: "writes events of all names under one",
		edit: edit{journalGo, "&& strings.HasPrefix(e.Name, prefix) &&", `&& strings.HasPrefix(prefix, "law") &&`},
	},
	{
		law: 11, what: "writes a repeat as a grant",
		edit: edit{acquireGo, "\t\th.prove(c, now)\n\t\treturn", "\t\th.prove(c, now)\n\t\tn.log(driver.EventGranted, h)\n\t\treturn"},
	},
	{
		law: 11, what: "loses the reason",
		edit: edit{journalGo, "Note: h.Note, Reason: r.Reason,", "Note: h.Note,"},
	},
	{
		law: 11, what: "does not write the end of a claim that was replaced",
		edit: edit{nameGo, "\t\tn.log(driver.EventReleased, from)\n", ""},
	},
	{
		law: 12, what: "a new fence per reader",
		edit: edit{nameGo, "\t\treturn n.readers\n", "\t\treturn h.Token\n"},
	},
	{
		law: 12, what: "one fence for ever",
		edit: edit{nameGo, "!slices.ContainsFunc(n.claims, func(o *claim) bool { return o.Mode() == driver.Shared })", "n.readers == 0"},
	},
	{
		law: 12, what: "a new fence beside kept and draining readers",
		edit: edit{nameGo, "return o.Mode() == driver.Shared })", "return o.Mode() == driver.Shared && o.state == driver.Held })"},
	},
	{
		law: 12, what: "fences counted claims",
		edit: edit{nameGo, "return 0 // counted", "return h.Token // counted"},
	},
	{
		law: 12, what: "the fence of the last generation",
		edit: edit{nameGo, "\tcase driver.Exclusive:\n\t\treturn h.Token\n", "\tcase driver.Exclusive:\n\t\treturn h.Token - 1\n"},
	},
	{
		law: 13, what: "compares tokens of a renewal as floats",
		edit: edit{renewGo, "c.Token != 0 && c.Token != h.Token", "c.Token != 0 && float64(c.Token) != float64(h.Token)"},
		run:  highMark,
	},
	{
		law: 13, what: "compares tokens of a release as floats",
		edit: edit{releaseGo, "c.Token == h.Token)", "float64(c.Token) == float64(h.Token))"},
		run:  highMark,
	},
	{
		law: 13, what: "compares tokens of a revocation as floats",
		edit: edit{revokeGo, "h.Token == r.Token", "float64(h.Token) == float64(r.Token)"},
		run:  highMark,
	},
	{
		law: 13, what: "goes through a float",
		edit: edit{nameGo, "\tn.last++\n", "\tn.last = uint64(float64(n.last) + 1)\n"},
		run:  highMark,
	},
	{
		law: 13, what: "lists a float",
		edit: edit{listGo, "Token:    h.Token,", "Token:    uint64(float64(h.Token)),"},
		run:  highMark,
	},
	{
		law: 13, what: "compares tokens of records as floats",
		edit: edit{recordsGo, "r.Token < old.Token", "float64(r.Token) < float64(old.Token)"},
	},
	{
		law: 14, what: "upserts",
		edit: edit{renewGo, "\th := n.granted(c.ID)\n\tswitch {\n\tcase h == nil && c.Token == 0:\n", "\th := n.granted(c.ID)\n\tif h == nil && n.room(c) {\n\t\th = n.grant(c, (&memory{}).client(), now)\n\t\tc.Token = h.Token\n\t}\n\tswitch {\n\tcase h == nil && c.Token == 0:\n"},
	},
	{
		law: 14, what: "revives",
		edit: edit{renewGo, "\tn.end(now)\n", ""},
	},
	{
		law: 14, what: "ignores the token",
		edit: edit{renewGo, " || c.Token != 0 && c.Token != h.Token:", ":"},
	},
	{
		law: 14, what: "ignores the ID",
		edit: edit{renewGo, "\th := n.granted(c.ID)\n\tswitch {\n\tcase h == nil && c.Token == 0:\n", "\th := n.granted(c.ID)\n\tif h == nil && len(n.claims) > 0 {\n\t\th = n.claims[0]\n\t}\n\tswitch {\n\tcase h == nil && c.Token == 0:\n"},
	},
	{
		law: 14, what: "does not extend",
		edit: edit{renewGo, "\th.prove(c, now)\n", ""},
	},
	{
		law: 14, what: "does not name the successor",
		edit: edit{renewGo, "\t\te.By = n.claims[k-1].holder(now)\n", ""},
	},
	{
		law: 14, what: "promotes",
		edit: edit{renewGo, "\tn.end(now)\n", "\tn.end(now)\n\tn.promote(now)\n"},
	},
	{
		law: 14, what: "gives no grant to a renewal without a token",
		edit: edit{renewGo, "\t\tp.Grant = &g\n", "\t\t_ = g\n"},
	},
	{
		law: 14, what: "tells no expiry",
		edit: edit{nameGo, "\t\th.client.lostLocked(h, &driver.NotHeldError{Name: n.key})\n", ""},
	},
	{
		law: 14, what: "tells no revocation",
		edit: edit{revokeGo, "\t\th.client.lostLocked(h, driver.ErrRevoked)\n", ""},
	},
	{
		law: 14, what: "does not close a feed",
		edit: edit{lossesGo, "\tclose(f.ch)\n", ""},
	},
	{
		law: 15, what: "one error for the batch",
		edit: edit{renewGo, "\t\tproofs[i] = s.m.renewLocked(c, now)\n", "\t\tproofs[i] = s.m.renewLocked(c, now)\n\t\tif proofs[i].Err != nil {\n\t\t\treturn nil, proofs[i].Err\n\t\t}\n"},
	},
	{
		law: 15, what: "stops at the first bad claim",
		edit: edit{renewGo, "\t\tproofs[i] = s.m.renewLocked(c, now)\n", "\t\tproofs[i] = s.m.renewLocked(c, now)\n\t\tif proofs[i].Err != nil {\n\t\t\tbreak\n\t\t}\n"},
	},
	{
		law: 15, what: "mixes up the proofs",
		edit: edit{renewGo, "proofs[i] =", "proofs[len(cs)-1-i] ="},
	},
	{
		law: 15, what: "does not refresh places",
		edit: edit{renewGo, "\t\t\tp.refresh(c, now)\n", ""},
	},
	{
		law: 15, what: "does not tell what was handed over",
		edit: edit{renewGo, "\t\tp.Grant = &g\n", "\t\t_ = g\n"},
	},
	{
		law: 15, what: "leaves a proved hand-over as it is",
		edit: edit{nameGo, "\th.state = driver.Held\n", ""},
	},
	{
		law: 15, what: "tells a revoked claim as gone",
		edit: edit{renewGo, "Err: driver.ErrRevoked}", "Err: n.notHeld(now)}"},
	},
	{
		law: 15, what: "proves for as long as ever",
		edit: edit{renewGo, "p := driver.Proof{TTL: c.TTL}", "p := driver.Proof{TTL: 2 * c.TTL}"},
	},
	{
		law: 16, what: "reads the clock on the wall",
		edit: edit{acquireGo, "\tnow := time.Now()\n\tn := s.m.nameLocked", "\tnow := time.Now().Truncate(time.Second)\n\tn := s.m.nameLocked"},
	},
	{
		law: 16, what: "ends claims by Close",
		edit: edit{storeGo, "\ts.closed = true\n", "\ts.closed = true\n\tfor _, n := range s.m.names {\n\t\tfor _, h := range n.claims {\n\t\t\tif h.client == s {\n\t\t\t\th.until = time.Now()\n\t\t\t}\n\t\t}\n\t}\n"},
	},
	{
		law: 16, what: "ends places by Close",
		edit: edit{storeGo, "\ts.closed = true\n", "\ts.closed = true\n\tfor _, n := range s.m.names {\n\t\tfor _, p := range n.line {\n\t\t\tif p.client == s {\n\t\t\t\tp.until = time.Now()\n\t\t\t}\n\t\t}\n\t}\n"},
	},
	{
		law: 17, what: "needs a release",
		edit: edit{nameGo, "\tfor !now.Before(h.until) {\n", "\tfor false && !now.Before(h.until) {\n"},
	},
	{
		law: 17, what: "ends a claim a moment after its TTL",
		edit: edit{nameGo, "\tfor !now.Before(h.until) {\n", "\tfor now.After(h.until) {\n"},
	},
	{
		law: 17, what: "forgets a death that was noticed",
		edit: edit{nameGo, " || n.tookOver {", " {"},
	},
	{
		law: 17, what: "does not tell of a death",
		edit: edit{nameGo, "\tn.tookOver = true\n", ""},
	},
	{
		law: 17, what: "tells of a death for ever",
		edit: edit{nameGo, "h.tookOver, n.tookOver = n.tookOver, false", "h.tookOver = n.tookOver"},
	},
	{
		law: 17, what: "ends only the first of several",
		edit: edit{nameGo, "\tn.claims = slices.DeleteFunc(n.claims, func(h *claim) bool { return n.ended(h, now) })", "\tif len(n.claims) > 0 && n.ended(n.claims[0], now) {\n\t\tn.claims = n.claims[1:]\n\t}"},
	},
	{
		law: 17, what: "does not end one behind another",
		edit: edit{nameGo, "{ return n.ended(h, now) })", "{ return h == n.claims[len(n.claims)-1] && n.ended(h, now) })"},
	},
	{
		law: 18, what: "ends at release",
		edit: edit{releaseGo, "c.Keep > 0 && kept", "false && kept"},
	},
	{
		law: 18, what: "restarts with a repeat",
		edit: edit{nameGo, "\tif h.heard.IsZero() {\n\t\th.heard = now\n", "\tif true {\n\t\th.heard = now\n"},
	},
	{
		law: 18, what: "counts from the hand-over",
		edit: edit{nameGo, "\t\t\th.state = driver.Handed\n", "\t\t\th.state, h.heard = driver.Handed, now\n"},
	},
	{
		law: 18, what: "keeps a claim that is released without it",
		edit: edit{releaseGo, "c.Keep > 0 && kept", "kept"},
	},
	{
		law: 18, what: "ends with the death",
		edit: edit{nameGo, "if kept := h.kept(); kept.After(h.until) {\n\t\t\t\th.state", "if kept := h.kept(); false {\n\t\t\t\th.state"},
	},
	{
		law: 18, what: "kept after a death ends like a release",
		edit: edit{nameGo, "\t\t\tif !h.died {\n\t\t\t\treturn true\n\t\t\t}\n\t\t\th.state", "\t\t\tif true {\n\t\t\t\treturn true\n\t\t\t}\n\t\t\th.state"},
	},
	{
		law: 18, what: "kept after a release ends like a death",
		edit: edit{nameGo, "\t\t\tif !h.died {\n\t\t\t\treturn true\n\t\t\t}\n\t\t\th.state", "\t\t\th.state"},
	},
	{
		law: 18, what: "proves a kept claim",
		edit: edit{nameGo, "h.state != driver.Kept && h.state", "h.state"},
	},
	{
		law: 18, what: "a kept claim takes up nothing",
		edit: edit{nameGo, "\t\tif h == from {\n", "\t\tif h == from || h.state == driver.Kept {\n"},
	},
	{
		law: 18, what: "a kept claim that was released counts as a death",
		edit: edit{releaseGo, "\t\th.state, h.until = driver.Kept, kept\n", "\t\th.state, h.until, n.tookOver = driver.Kept, kept, true\n"},
	},
	{
		law: 18, what: "forgets a name that only waiters know",
		edit: edit{nameGo, "len(n.line) > 0 ||", "len(n.line) > 1 ||"},
	},
	{
		law: 19, what: "deletes by name",
		edit: edit{releaseGo, "\th := n.granted(c.ID)\n", "\tvar h *claim\n\tif len(n.claims) > 0 {\n\t\th, c.Token = n.claims[0], 0\n\t}\n"},
	},
	{
		law: 19, what: "ignores the token",
		edit: edit{releaseGo, "(c.Token == 0 || c.Token == h.Token)", "(c.Token == 0 || h.Token > 0)"},
	},
	{
		law: 19, what: "gives up a later place",
		edit: edit{releaseGo, "case h == nil && c.Token == 0 && n.waiting", "case h == nil && n.waiting"},
	},
	{
		law: 19, what: "does not name the successor",
		edit: edit{renewGo, "\t\te.By = n.claims[k-1].holder(now)\n", ""},
	},
	{
		law: 19, what: "ignores the ID",
		edit: edit{releaseGo, "\th := n.granted(c.ID)\n", "\th := n.granted(c.ID)\n\tfor _, o := range n.claims {\n\t\tif o.Token == c.Token {\n\t\t\th = o\n\t\t}\n\t}\n"},
	},
	{
		law: 19, what: "does not take back without a token",
		edit: edit{releaseGo, "(c.Token == 0 || c.Token == h.Token)", "c.Token == h.Token"},
	},
	{
		law: 20, what: "pops a waiter on each repeat",
		edit: edit{releaseGo, "\tdefault:\n\t\treturn n.notHeld(now)", "\tdefault:\n\t\tn.claims = nil\n\t\tn.promote(now)\n\t\treturn n.notHeld(now)"},
	},
	{
		law: 20, what: "does not give up a place",
		edit: edit{releaseGo, "\t\tn.leave(c.ID)\n", ""},
	},
	{
		law: 20, what: "says released to each repeat",
		edit: edit{releaseGo, "\tdefault:\n\t\treturn n.notHeld(now)", "\tdefault:\n\t\treturn nil"},
	},
	{
		law: 20, what: "gives up the wrong place",
		edit: edit{releaseGo, "\t\tn.leave(c.ID)\n", "\t\tn.line = n.line[:len(n.line)-1]\n"},
	},
	{
		law: 20, what: "does not take back a hand-over",
		edit: edit{releaseGo, "\tcase h != nil && (c.Token", "\tcase h != nil && h.state != driver.Handed && (c.Token"},
	},
	{
		law: 21, what: "drops the old claim first",
		edit: edit{acquireGo, "\tif c.From != \"\" && n.held(c.From) == nil {\n", "\tif from := n.held(c.From); from != nil && !n.room(c) {\n\t\tn.remove(from)\n\t}\n\tif c.From != \"\" && n.held(c.From) == nil {\n"},
	},
	{
		law: 21, what: "whoever grows stands last",
		edit: edit{acquireGo, "n.line = slices.Insert(n.line, 0, p)", "n.line = append(n.line, p)"},
	},
	{
		law: 21, what: "a second one that grows takes a place",
		edit: edit{acquireGo, "\t\te.Deadlock = e.Deadlock || c.From != \"\"\n", ""},
	},
	{
		law: 21, what: "a second one that grows is told to wait",
		edit: edit{acquireGo, "\t\te.Deadlock = e.Deadlock || c.From != \"\"\n", "\t\tif c.From != \"\" {\n\t\t\te.Place = p.number\n\t\t}\n"},
	},
	{
		law: 21, what: "shrinking has to fit",
		edit: edit{acquireGo, "n.shrinks(c) || ", ""},
	},
	{
		law: 21, what: "keeps the old claim",
		edit: edit{nameGo, "\t\tn.remove(from)\n", ""},
	},
	{
		law: 21, what: "loses Keep",
		edit: edit{nameGo, "\t\th.heard = from.heard\n", ""},
	},
	{
		law: 21, what: "keeps the old claim for its Keep",
		edit: edit{nameGo, "\t\tn.remove(from)\n", "\t\tfrom.state, from.until = driver.Kept, now.Add(from.Keep)\n"},
	},
	{
		law: 21, what: "shrinking lets nobody in",
		edit: edit{acquireGo, "\tif c.From != \"\" {\n\t\tn.promote(now)", "\tif false {\n\t\tn.promote(now)"},
	},
	{
		law: 21, what: "a place that grows outlives its claim",
		edit: edit{nameGo, ` && (p.From == "" || n.held(p.From) != nil)`, ""},
	},
	{
		law: 21, what: "replaces a revoked claim",
		edit: edit{nameGo, "h != nil && h.state != driver.Revoked {", "h != nil {"},
	},
	{
		law: 21, what: "growing waits for the line",
		edit: edit{acquireGo, ` && (c.From == "" || p.From != "")`, ""},
	},
	{
		law: 21, what: "says held when the old claim is gone",
		edit: edit{acquireGo, "\t\treturn n.lost(c.From, now)\n", "\t\treturn n.refusal(c, now)\n"},
	},
	{
		law: 21, what: "the old claim is in the way of its own growth",
		edit: edit{nameGo, "\t\tif h == from {\n", "\t\tif h == from && h == nil {\n"},
	},
	{
		law: 21, what: "keeps the token",
		edit: edit{nameGo, "\t\tn.remove(from)\n", "\t\tn.remove(from)\n\t\th.Token = from.Token\n"},
	},
	{
		law: 21, what: "any smaller claim shrinks",
		edit: edit{convertGo, "from.Capacity == c.Capacity && c.Units < from.Units", "c.Units <= from.Units"},
	},
	{
		law: 21, what: "a place that grows is thought to outlive its claim",
		edit: edit{acquireGo, "from != nil && from.until.Before(p.until)", "from != nil && false"},
	},
	{
		law: 22, what: "frees at once",
		edit: edit{revokeGo, "\tif !r.Now {\n\t\th.state", "\tif false {\n\t\th.state"},
	},
	{
		law: 22, what: "extends",
		edit: edit{renewGo, "\tcase h.state == driver.Revoked:\n", "\tcase h.state == driver.Revoked:\n\t\th.until = now.Add(c.TTL)\n"},
	},
	{
		law: 22, what: "tells nobody",
		edit: edit{renewGo, "\tcase h.state == driver.Revoked:\n", "\tcase false:\n"},
	},
	{
		law: 22, what: "says gone, not revoked",
		edit: edit{renewGo, "Err: driver.ErrRevoked}", "Err: n.notHeld(now)}"},
	},
	{
		law: 22, what: "goes by name",
		edit: edit{revokeGo, "\t\tif h.Token == r.Token {\n", "\t\tif true {\n"},
	},
	{
		law: 22, what: "leaves kept claims",
		edit: edit{revokeGo, "\tif !live && !r.Now {\n", "\tif !live {\n"},
	},
	{
		law: 22, what: "now is no death",
		edit: edit{revokeGo, "\tn.tookOver = true\n", ""},
	},
	{
		law: 22, what: "now lets nobody in",
		edit: edit{revokeGo, "\t\t\tn.promote(now) // the name may be free, or a place that grows dead\n", ""},
	},
	{
		law: 22, what: "takes a repeat for a new claim",
		edit: edit{acquireGo, "\t\tif h.state == driver.Revoked {\n", "\t\tif false {\n"},
	},
	{
		law: 22, what: "now drains",
		edit: edit{revokeGo, "\tn.remove(h)\n", "\th.state, h.until = driver.Draining, time.Now().Add(h.Delay)\n"},
	},
	{
		law: 22, what: "a revoked claim takes up nothing",
		edit: edit{nameGo, "\t\tif h == from {\n", "\t\tif h == from || h.state == driver.Revoked {\n"},
	},
	{
		law: 22, what: "a revoked claim never ends",
		edit: edit{nameGo, "case driver.Held, driver.Handed, driver.Revoked:\n\t\t\tn.died(h)", "case driver.Held, driver.Handed, driver.Revoked:\n\t\t\tif h.state == driver.Revoked {\n\t\t\t\treturn false\n\t\t\t}\n\t\t\tn.died(h)"},
	},
	{
		law: 22, what: "does not bound the reason",
		edit: edit{revokeGo, "len(r.Reason) > driver.MaxNote || ", ""},
	},
	{
		law: 22, what: "revokes what has ended",
		edit: edit{revokeGo, "\tn.end(now)\n", ""},
	},
	{
		law: 49, what: "delays a release too",
		edit: edit{releaseGo, "\tn.remove(h)\n", "\th.state, h.until = driver.Draining, now.Add(h.Delay)\n"},
	},
	{
		law: 49, what: "no Delay after a death",
		edit: edit{nameGo, "\t\t\t} else {\n\t\t\t\th.state, h.until = driver.Draining, h.until.Add(h.Delay)\n", "\t\t\t} else {\n\t\t\t\treturn true\n"},
	},
	{
		law: 49, what: "counts Delay from when the death is noticed",
		edit: edit{nameGo, "\t\t\t} else {\n\t\t\t\th.state, h.until = driver.Draining, h.until.Add(h.Delay)\n", "\t\t\t} else {\n\t\t\t\th.state, h.until = driver.Draining, now.Add(h.Delay)\n"},
	},
	{
		law: 49, what: "a draining claim takes up nothing",
		edit: edit{nameGo, "\t\tif h == from {\n", "\t\tif h == from || h.state == driver.Draining {\n"},
	},
	{
		law: 49, what: "a draining claim closes the whole name",
		edit: edit{nameGo, "exclusive = exclusive || h.Mode() == driver.Exclusive", "exclusive = exclusive || h.state == driver.Draining"},
	},
	{
		law: 49, what: "proves a draining claim",
		edit: edit{nameGo, "h.state != driver.Kept && h.state != driver.Draining", "h.state != driver.Kept"},
	},
	{
		law: 49, what: "lists it as held",
		edit: edit{listGo, "State:    h.state,", "State:    min(h.state, driver.Kept),"},
	},
}
