package mutants_test

// recordMutants break L46 to L48: records.
var recordMutants = []mutant{
	{
		law: 46, what: "last write wins",
		edit: edit{recordsGo, "\tif r.Version != old.Version {\n", "\tif false {\n"},
	},
	{
		law: 46, what: "versions begin again",
		edit: edit{recordsGo, "r.Version = s.m.version\n", "r.Version = old.Version + 1\n"},
	},
	{
		law: 46, what: "deletes any version",
		edit: edit{recordsGo, "old.Version != version {", "false {"},
	},
	{
		law: 46, what: "keeps the writer's slice",
		edit: edit{recordsGo, "\tr.Value = slices.Clone(r.Value)\n", ""},
	},
	{
		law: 46, what: "gives readers its own slice",
		edit: edit{recordsGo, "\tc.Value = slices.Clone(c.Value)\n", ""},
	},
	{
		law: 46, what: "tells another now",
		edit: edit{recordsGo, "now.Round(0), nil", "now.Round(time.Hour).Add(time.Hour), nil"},
	},
	{
		law: 46, what: "takes any size",
		edit: edit{recordsGo, "case len(r.Value) > driver.MaxRecord:", "case false:"},
	},
	{
		law: 46, what: "cuts the last byte of a large value",
		edit: edit{recordsGo, "\tr.Value = slices.Clone(r.Value)\n", "\tr.Value = slices.Clone(r.Value[:min(len(r.Value), driver.MaxRecord-1)])\n"},
	},
	{
		law: 46, what: "writes although it says stale",
		edit: edit{recordsGo, "\tif r.Version != old.Version {\n", "\tif r.Version != old.Version {\n\t\told.Value = r.Value\n"},
	},
	{
		law: 47, what: "ignores the token",
		edit: edit{recordsGo, "case r.TokenName == old.TokenName && r.Token < old.Token:", "case false:"},
	},
	{
		law: 47, what: "forgets the token with a Put without one",
		edit: edit{recordsGo, "r.TokenName, r.Token = old.TokenName, old.Token", "r.Token = 0"},
	},
	{
		law: 47, what: "compares with another name's token",
		edit: edit{recordsGo, "r.TokenName == old.TokenName && r.Token < old.Token", "r.Token < old.Token"},
	},
	{
		law: 47, what: "refuses the same token",
		edit: edit{recordsGo, "r.Token < old.Token:", "r.Token <= old.Token:"},
	},
	{
		law: 47, what: "takes token 0",
		edit: edit{recordsGo, "case r.Token == 0:", "case false:"},
	},
	{
		law: 47, what: "a larger token passes a stale version",
		edit: edit{recordsGo, "\tif r.Version != old.Version {\n", "\tif r.Version != old.Version && (r.TokenName == \"\" || r.Token <= old.Token) {\n"},
	},
	{
		law: 48, what: "dies with the process",
		edit: edit{storeGo, "\ts.closed = true\n", "\ts.closed = true\n\tclear(s.m.records)\n"},
	},
	{
		law: 48, what: "lives for ever",
		edit: edit{recordsGo, "case !now.Before(r.until):", "case false:"},
	},
	{
		law: 48, what: "counts retention from the first Put",
		edit: edit{recordsGo, "&record{r, now.Add(r.Retention)}", "&record{r, map[bool]time.Time{true: now.Add(r.Retention), false: old.until}[old.Version == 0]}"},
	},
	{
		law: 48, what: "tells the whole retention",
		edit: edit{recordsGo, "\tc.Retention = r.until.Sub(now)\n", ""},
	},
	{
		law: 48, what: "lists every record",
		edit: edit{recordsGo, "\t\tif !strings.HasPrefix(key, prefix) {\n", "\t\tif !strings.HasPrefix(key, prefix) && prefix == \"\" {\n"},
	},
	{
		law: 48, what: "ends a moment early",
		edit: edit{recordsGo, "now.Add(r.Retention)}", "now.Add(r.Retention - time.Millisecond)}"},
	},
	{
		law: 48, what: "lists what has ended",
		edit: edit{recordsGo, "if r := s.m.recordLocked(key, now); r.Version != 0 {", "if r := s.m.records[key]; r.Version != 0 {"},
	},
	{
		law: 48, what: "a release takes the record along",
		edit: edit{releaseGo, "\tn.remove(h)\n", "\tn.remove(h)\n\tdelete(n.m.records, n.key)\n"},
	},
}
