# What a person runs. `make test` is what CI runs.

SHELL     := /bin/sh
# The modules, from the ground up. tools is for building only.
MODULES   := . sqlitelock redislock pglock fencetest otelhooks cmd bench examples
PACKAGES  := $(foreach m,$(MODULES),./$(patsubst .,,$(m))$(if $(filter .,$(m)),,/)...)
STORES     := ./sqlitelock ./redislock ./pglock
LAWS       := ^TestConformance(InBubble|OfThePlainLayout)?$$
TOPOLOGIES := ^TestConformance(OfAQuorum|OfAPlainQuorum|OfACluster|OfSentinels|OverAUsersClient)$$
# Scripts of the command, and a table, in which each process does one thing
# after the other: the race detector would find nothing, and make them thrice as
# slow.
PLAIN := ^TestScripts$$/^(absent|argv|before|completion|doctor|env|escape|fence|force-unlock|full|guardian-stopped|history|limit|long|modes|newcomer|outcome|parent|pipes|sinks|skip|spelled|storeinit|stores|stream|timeout|usage)$$|ExitCode|KeysOfAllKinds|KeysThatCannotBe|NoCommandShows
GO        ?= go
SEED      ?= 0
FOR       ?= 2m
SCHEDULES ?=
MUTANTS   ?=
export CGO_ENABLED ?= 1

.PHONY: demo test check lint race live more mutants bench schedules torture servers

demo: ## two runs of one job: the first runs, the second is told who holds it
	$(GO) build -o bin/dibs ./cmd/dibs
	sh scripts/demo.sh bin/dibs

test: servers check ## everything, on a fresh machine too

check: lint race live mutants

servers: ## installs what the tests need (on Debian, as root), or prints the command
	sh scripts/servers.sh

lint: ## format, vet, staticcheck, modernizers, tidiness, other systems
	sh scripts/lint.sh $(MODULES)

# By itself the detector keeps each process for a second at its end, and the
# command's tests start thousands.
race: ## every test under the race detector, but for those in real time, the plain ones and the examples
	@echo "== tests under the race detector"
	GORACE=atexit_sleep_ms=10 $(GO) test -race -short -timeout 15m -skip '$(PLAIN)' $(filter-out ./fencetest/... ./examples/...,$(PACKAGES))

live: ## the stores' laws in real time, which mostly wait, and whole programs
	@echo "== fences, examples, and the command as one runs it"
	$(GO) test -timeout 15m -skip TestTorture ./fencetest/... ./examples/...
	$(GO) test -timeout 15m -short -parallel 8 -run '$(PLAIN)' ./cmd/internal/cli
	@echo "== laws in real time"
	$(GO) test -timeout 15m -p 3 -parallel 8 -run '$(LAWS)' $(STORES)
	@echo "== many leases, and many schedules of a quorum"
	$(GO) test -timeout 15m -p 3 -run 'Many|HeapPer' $(STORES) ./redislock/internal/quorum/model

more: ## what takes longer than make test may: laws on several Redis servers and their faults under load, of advisory locks and of ShedLock's table, the command on every server, storms
	@echo "== laws on a quorum, a cluster, behind sentinels, and over a user's client"
	$(GO) test -timeout 20m -parallel 24 -run '$(TOPOLOGIES)' ./redislock
	@echo "== masters and nodes that are killed, stopped and cut off under load"
	$(GO) test -timeout 15m -parallel 4 -run 'UnderLoad|InABlackHole|DeadShard' ./redislock
	@echo "== laws of advisory locks, of ShedLock's table, of the journal"
	$(GO) test -timeout 20m -parallel 8 -run 'OfAdvisoryLocks|OfTheShedlockLayout|WithJournal' ./pglock
	@echo "== laws behind PgBouncer in both its modes"
	$(GO) test -timeout 20m -parallel 8 -run 'BehindPgBouncer' ./pglock
	@echo "== the command on every server"
	$(GO) test -timeout 20m -parallel 4 -run 'ScriptsOnServers|ExitCode|NoCommandShows' ./cmd/internal/cli
	@echo "== storms of kill -9"
	$(GO) test -timeout 15m -p 1 -run 'TortureOnce|TortureStorm' ./fencetest $(STORES)

mutants: ## two mutants of every law must be caught; all of them: make mutants MUTANTS=all
	@echo "== mutants"
	@DIBS_MUTANTS='$(MUTANTS)' $(GO) test -count=1 -timeout 30m -v -run '^TestMutants$$' ./drivertest/mutants

bench: ## figures beside a raw floor of the same run; writes bench/RESULTS.md
	cd bench && $(GO) run . -write RESULTS.md

schedules: ## short tortures, each with crashes and restarts: make schedules SEED=7 SCHEDULES=100 (10,000 if not said)
	sh scripts/schedules.sh $(SEED) $(or $(SCHEDULES),10000)

torture: $(if $(SCHEDULES),schedules) ## seeded processes under faults: make torture SEED=7 FOR=10m (SEED=0: a new one); with SCHEDULES=10000 those first
	sh scripts/torture.sh $(SEED) $(FOR)
