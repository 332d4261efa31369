package mutants_test

// quorumMutants break Redlock: the client's decisions, and what a node's scripts do.
// What hunts them needs Redis, and takes a build of its own, so they are run when
// they are asked for (make mutants MUTANTS=quorum, or all).
var quorumMutants = []mutant{
	{
		law: 11, what: "quorum: takes the maximum in place of refusing", pkg: quorumPkg, run: "^TestPublishedCounterexamples$",
		edit: edit{settleLua, "    all[i] = {'passed', digits(n.c)}\n", "    all[i] = {'mine'}\n"},
	},
	{
		law: 11, what: "quorum: takes a free name whatever its counter", pkg: quorumPkg, run: "^TestNodesDoAsTheModelDoes$",
		edit: edit{settleLua, "elseif n.s == 'f' and n.c < c.fence then", "elseif n.s == 'f' then"},
	},
	{
		law: 11, what: "quorum: grants what some nodes have passed", pkg: modelPkg, run: "^TestManySchedules$",
		edit: edit{ballotGo, "\tcase mine+passed >= q:\n\t\treturn Settle, most\n", "\tcase mine+passed >= q:\n\t\treturn Granted, fence\n"},
	},
	{
		law: 11, what: "quorum: needs no majority of one counter", pkg: modelPkg, run: "^TestManySchedules$",
		edit: edit{ballotGo, "\t\t\tif same >= q {\n", "\t\t\tif same >= 1 {\n"},
	},
	{
		law: 11, what: "quorum: forgets a counter with its name", pkg: quorumPkg, run: "^TestQuorumForgets$",
		edit: edit{giveLua, "        call('HSET', KEYS[1], 'base', digits(base))\n", ""},
	},
	{
		law: 1, what: "quorum: a node votes without its memory", pkg: quorumPkg, run: "^TestNodeWithoutMemoryDoesNotVote$",
		edit: edit{"redislock/redlock_member.go", "\tcase i.run != i.now && !i.durable:\n", "\tcase false:\n"},
	},
	{
		law: 3, what: "quorum: a repeat does not extend", pkg: quorumPkg, run: "^TestRepeatsExtend$",
		edit: edit{askLua, "  extend(n, c)\n", ""},
	},
	{
		law: 3, what: "quorum: settling does not extend", pkg: quorumPkg, run: "^TestRepeatsExtend$",
		edit: edit{settleLua, "    extend(n, c)\n", ""},
	},
	{
		law: 14, what: "quorum: renews by the claim alone", pkg: quorumPkg, run: "^TestRenewalIsNotByTokenAlone$",
		edit: edit{proveLua, "elseif mine(n, c) and (c.fence == 0 or n.c == c.fence) then", "elseif mine(n, c) then"},
	},
	{
		law: 19, what: "quorum: a release tells of its fence before it is known to be one", pkg: quorumPkg, run: "^TestConformanceOfAQuorum$/^laws$/^L19_",
		edit: edit{"redislock/redlock_release.go", "\tif !b.sure {\n", "\tif false {\n"},
	},
	{
		law: 38, what: "quorum: takes back only where it was granted", pkg: quorumPkg, run: "^TestAttemptsAreTakenBackEverywhere$",
		edit: edit{"redislock/redlock_acquire.go", "\t\tif b.Kind != quorum.Held {\n", "\t\tif b.Kind == quorum.Mine {\n"},
		more: []edit{{"redislock/redlock_owed.go", "\t\tcase unheard(r.err):\n", "\t\tcase false:\n"}},
	},
	{
		law: 38, what: "quorum: leaves a claim where it came late", pkg: quorumPkg, run: "^TestANodeWithAnotherCounter$", hangs: true,
		edit: edit{"redislock/redlock_release.go", "\tb.takeBack(b.ahead, b.claim, b.number)\n", ""},
	},
	{
		law: 1, what: "quorum: readmits a node at once that was emptied", pkg: quorumPkg, run: "^TestReadmission$",
		edit: edit{"redislock/redlock_admin.go", "; left > 0 {\n", "; left > time.Hour {\n"},
	},
	{
		law: 22, what: "quorum: a repeat takes back what was revoked", pkg: quorumPkg, run: "^TestSchedulesOnRealNodes$",
		edit: edit{"redislock/lua/redlock/lib.lua", "return n.s == 'h' and n.id == c.id and not n.foreign", "return (n.s == 'h' or n.s == 'r') and n.id == c.id and not n.foreign"},
	},
	{
		law: 22, what: "quorum: lists a claim under its largest counter", pkg: quorumPkg, run: "^TestANodeWithAnotherCounter$",
		edit: edit{"redislock/redlock_acquire.go", "\t\treturn cmp.Or(cmp.Compare(same(x), same(y)), cmp.Compare(x.Counter, y.Counter))\n", "\t\treturn cmp.Compare(x.Counter, y.Counter+0*uint64(same(x)))\n"},
	},
	{
		law: 38, what: "quorum: releases at a majority", pkg: quorumPkg, run: "^TestAttemptsAreTakenBackEverywhere$",
		edit: edit{"redislock/redlock_release.go", "\tp := s.ask(s.nodes, ", "\tp := s.ask(s.nodes[:quorum.Majority(len(s.nodes))], "},
		more: []edit{{"redislock/redlock_release.go", "\tfor range s.nodes {\n", "\tfor range quorum.Majority(len(s.nodes)) {\n"}},
	},
}

const (
	quorumPkg = "./redislock"
	modelPkg  = "./redislock/internal/quorum/model"
	ballotGo  = "redislock/internal/quorum/ballot.go"
	askLua    = "redislock/lua/redlock/ask.lua"
	settleLua = "redislock/lua/redlock/settle.lua"
	proveLua  = "redislock/lua/redlock/renew.lua"
	giveLua   = "redislock/lua/redlock/release.lua"
)
