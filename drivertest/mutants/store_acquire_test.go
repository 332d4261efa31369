package mutants_test

// acquireMutants break L1 to L10: what an Acquire answers.
var acquireMutants = []mutant{
	{
		law: 1, what: "forgets to look at holders that were renewed after their first TTL",
		edit: edit{nameGo, "\t\th.until = until\n", "\t\t_ = until\n"},
	},
	{
		law: 1, what: "lets a claim in beside one that was handed over",
		edit: edit{nameGo, "\t\tif h == from {\n", "\t\tif h == from || h.state == driver.Handed {\n"},
	},
	{
		law: 1, what: "does not count claims at all",
		edit: edit{nameGo, "\t\tunits += int64(h.Units)\n", ""},
	},
	{
		law: 2, what: "uses the newcomer's capacity alone",
		edit: edit{nameGo, "smallest = min(smallest, h.Capacity)", "smallest = min(smallest, c.Capacity)"},
	},
	{
		law: 2, what: "counts claims, not their units",
		edit: edit{nameGo, "units += int64(h.Units)", "units++"},
	},
	{
		law: 2, what: "adds units in 32 bits",
		edit: edit{claimGo, "units+int64(c.Units) <= int64(min(smallest, c.Capacity))", "int64(int32(units)+int32(c.Units)) <= int64(min(smallest, c.Capacity))"},
	},
	{
		law: 2, what: "ignores the line",
		edit: edit{acquireGo, "(c.Barging || !n.behind(c, now))", "(true || !n.behind(c, now))"},
	},
	{
		law: 2, what: "does not count a reader as a unit",
		edit: edit{nameGo, "units += int64(h.Units)", "units += int64(h.Units % h.Capacity * min(1, driver.Unlimited-h.Capacity))"},
	},
	{
		law: 3, what: "returns the token without extending",
		edit: edit{acquireGo, "\t\th.prove(c, now)\n\t\treturn h.grant(c.TTL)", "\t\treturn h.grant(c.TTL)"},
	},
	{
		law: 3, what: "shortens",
		edit: edit{nameGo, "if until := now.Add(c.TTL); until.After(h.until) {", "if until := now.Add(c.TTL); true {"},
	},
	{
		law: 3, what: "extends from the first call",
		edit: edit{nameGo, "if until := now.Add(c.TTL); until", "if until := h.granted.Add(c.TTL); until"},
	},
	{
		law: 3, what: "gives a repeat another token",
		edit: edit{acquireGo, "\tif h := n.held(c.ID); h != nil {\n", "\tif h := n.held(c.ID); h != nil {\n\t\th.Token = n.next()\n"},
	},
	{
		law: 3, what: "grants a repeat as one claim more",
		edit: edit{acquireGo, "\tif h := n.held(c.ID); h != nil {\n", "\tif h := n.held(c.ID); h != nil && h.state == driver.Handed {\n"},
	},
	{
		law: 3, what: "takes another claim for a repeat",
		edit: edit{acquireGo, "h != nil && !same(h.Claim, c) ||", "h != nil && false ||"},
	},
	{
		law: 3, what: "takes a claim that replaces another one for a repeat",
		edit: edit{acquireGo, " && old.From == c.From", ""},
	},
	{
		law: 3, what: "tells a repeat no fence",
		edit: edit{acquireGo, "\t\th.prove(c, now)\n\t\treturn h.grant(c.TTL)", "\t\th.prove(c, now)\n\t\treturn driver.Grant{Token: h.Token, TTL: c.TTL}"},
	},
	{
		law: 4, what: "revives under the old token",
		edit: edit{acquireGo, "\tn.end(now)\n\th, p :=", "\tif h := n.granted(c.ID); h != nil {\n\t\th.until = h.until.Add(time.Hour)\n\t}\n\tn.end(now)\n\th, p :="},
	},
	{
		law: 4, what: "keeps the token for the ID",
		edit: edit{nameGo, "\th.Token = n.next()\n", "\tif h.Token == 0 {\n\t\th.Token = n.next()\n\t}\n"},
	},
	{
		law: 4, what: "begins again at 1",
		edit: edit{nameGo, "\tm.mark = max(m.mark, n.last)\n", ""},
	},
	{
		law: 5, what: "maps an error to ErrHeld",
		edit: edit{storeGo, `return fmt.Errorf("mem: %w", cause)`, "return &driver.HeldError{}"},
	},
	{
		law: 5, what: "passes the caller's cause on as its own answer",
		edit: edit{storeGo, "if driver.Certain(cause) {", "if false {"},
	},
	{
		law: 5, what: "says that a closed store holds nothing",
		edit: edit{storeGo, `return fmt.Errorf("mem: %w", driver.ErrClosed)`, `return fmt.Errorf("mem: %w: %w", driver.ErrClosed, driver.ErrNotHeld)`},
	},
	{
		law: 5, what: "says that a bad claim is held by another",
		edit: edit{acquireGo, "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n", "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, &driver.HeldError{Name: c.Name}\n"},
	},
	{
		law: 5, what: "does not check the claim",
		edit: edit{acquireGo, "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n", "\tc, err := c, error(nil)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n"},
	},
	{
		law: 5, what: "does not close",
		edit: edit{storeGo, "\ts.closed = true\n", ""},
	},
	{
		law: 6, what: "no RetryAfter",
		edit: edit{acquireGo, "\te.RetryAfter = max(n.m.facts.Step, slices.MinFunc(ends, time.Time.Compare).Sub(now)) // 0 would be unknown\n", "\t_ = ends\n"},
	},
	{
		law: 6, what: "RetryAfter of the last end",
		edit: edit{acquireGo, "slices.MinFunc(ends", "slices.MaxFunc(ends"},
	},
	{
		law: 6, what: "RetryAfter without Keep and Delay",
		edit: edit{acquireGo, "ends = append(ends, h.gone())", "ends = append(ends, h.until)"},
	},
	{
		law: 6, what: "RetryAfter without the places ahead",
		edit: edit{acquireGo, "\t\t\tends = append(ends, p.dies(n))\n", "\t\t\t_ = p\n"},
	},
	{
		law: 6, what: "names no holder",
		edit: edit{acquireGo, "\t\t\te.Holder = h.holder(now)\n", ""},
	},
	{
		law: 6, what: "does not tell the place",
		edit: edit{acquireGo, "\te.Place = p.number\n\treturn e", "\treturn e"},
	},
	{
		law: 6, what: "does not tell that the name is reserved",
		edit: edit{acquireGo, "\t\t\te.Reserved = room\n", "\t\t\t_ = room\n"},
	},
	{
		law: 6, what: "reuses the numbers of places",
		edit: edit{acquireGo, "number: n.next()", "number: uint64(len(n.line) + 1)"},
	},
	{
		law: 6, what: "gives a place to those without patience",
		edit: edit{acquireGo, " || c.Patience == 0 ||", " ||"},
	},
	{
		law: 6, what: "forgets the Delay after a death into kept",
		edit: edit{nameGo, "\t\treturn kept.Add(h.Delay)\n", "\t\treturn kept\n"},
	},
	{
		law: 6, what: "counts a Delay after a release",
		edit: edit{nameGo, "\t\tif !h.died {\n\t\t\treturn h.until\n\t\t}\n", ""},
	},
	{
		law: 6, what: "RetryAfter of a place behind",
		edit: edit{acquireGo, "\t\tif p.ID == c.ID {\n\t\t\tbreak", "\t\tif p.ID == c.ID {\n\t\t\tcontinue"},
	},
	{
		law: 7, what: "silently treats shared as exclusive",
		edit: edit{acquireGo, "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n", "\tif c.Mode() == driver.Shared {\n\t\tc.Capacity = 1\n\t}\n\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n"},
	},
	{
		law: 7, what: "grants a mode that it does not have",
		edit: edit{acquireGo, "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n", "\tf := s.m.facts\n\tf.Modes |= driver.Shared\n\tc, err := c.Check(f)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n"},
		run:  exclusiveOnly,
	},
	{
		law: 7, what: "makes a mode that it does not have another",
		edit: edit{acquireGo, "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n", "\tif s.m.facts.Modes&c.Mode() == 0 {\n\t\tc.Units, c.Capacity = 1, 1\n\t}\n\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n"},
		run:  exclusiveOnly,
	},
	{
		law: 7, what: "tells an unsupported mode as held",
		edit: edit{acquireGo, "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n", "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, &driver.HeldError{Name: c.Name}\n"},
		run:  exclusiveOnly,
	},
	{
		law: 8, what: "folds case",
		edit: edit{nameGo, "\tn := m.names[key]\n", "\tkey = strings.ToLower(key)\n\tn := m.names[key]\n"},
		more: []edit{{nameGo, "\t\"slices\"\n", "\t\"slices\"\n\t\"strings\"\n"}},
	},
	{
		law: 8, what: "trims",
		edit: edit{nameGo, "\tn := m.names[key]\n", "\tkey = strings.TrimSpace(key)\n\tn := m.names[key]\n"},
		more: []edit{{nameGo, "\t\"slices\"\n", "\t\"slices\"\n\t\"strings\"\n"}},
	},
	{
		law: 8, what: "cuts long names",
		edit: edit{nameGo, "\tn := m.names[key]\n", "\tkey = key[:min(len(key), driver.MaxName-1)]\n\tn := m.names[key]\n"},
	},
	{
		law: 8, what: "cleans paths",
		edit: edit{nameGo, "\tn := m.names[key]\n", "\tkey = strings.ReplaceAll(key, \"//\", \"/\")\n\tn := m.names[key]\n"},
		more: []edit{{nameGo, "\t\"slices\"\n", "\t\"slices\"\n\t\"strings\"\n"}},
	},
	{
		law: 8, what: "allows some control characters",
		edit: edit{claimGo, "if unicode.IsControl(r) {", "if unicode.IsControl(r) && r < ' ' {"},
	},
	{
		law: 8, what: "allows any bytes",
		edit: edit{claimGo, "case !utf8.ValidString(name):", "case false:"},
	},
	{
		law: 8, what: "counts characters, not bytes",
		edit: edit{claimGo, "case len(name) > MaxName:", "case utf8.RuneCountInString(name) > MaxName:"},
	},
	{
		law: 8, what: "releases under any name",
		edit: edit{releaseGo, "\tif err := driver.CheckName(c.Name); err != nil {\n\t\treturn err\n\t}\n", ""},
	},
	{
		law: 9, what: "ignores ctx",
		edit: edit{storeGo, "\tif ctx.Err() == nil {\n", "\tif true {\n"},
	},
	{
		law: 9, what: "leaves a goroutine",
		edit:  edit{acquireGo, "\tnow := time.Now()\n\tn := s.m.nameLocked", "\tgo func() { select {} }()\n\tnow := time.Now()\n\tn := s.m.nameLocked"},
		hangs: true,
	},
	{
		law: 10, what: "truncates to whole seconds",
		edit: edit{acquireGo, "\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n", "\tc.TTL = c.TTL.Truncate(time.Second)\n\tc, err := c.Check(s.m.facts)\n\tif err != nil {\n\t\treturn driver.Grant{}, err\n"},
	},
	{
		law: 10, what: "rounds down",
		edit: edit{factsGo, "ttl += step - rest", "ttl -= rest"},
	},
	{
		law: 10, what: "takes any positive TTL",
		edit: edit{factsGo, "case ttl < f.MinTTL:", "case false:"},
	},
	{
		law: 10, what: "takes an endless TTL",
		edit: edit{factsGo, "case ttl > f.MaxTTL:", "case false:"},
	},
	{
		law: 10, what: "does not check a renewal",
		edit: edit{renewGo, "\tc, err := c.Check(m.facts)\n", "\terr := error(nil)\n"},
	},
	{
		law: 10, what: "ends a claim early",
		edit: edit{nameGo, "until: now.Add(c.TTL)}", "until: now.Add(c.TTL - time.Millisecond)}"},
	},
	{
		law: 10, what: "keeps a claim for what was asked, not for what was granted",
		edit: edit{nameGo, "until: now.Add(c.TTL)}", "until: now.Add(c.TTL / time.Second * time.Second)}"},
	},
}
