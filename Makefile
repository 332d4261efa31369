# What a person runs. `make test` is what CI runs.

SHELL     := /bin/sh
# The modules, from the ground up. tools is for building only.
MODULES   := . sqlitelock redislock pglock fencetest otelhooks cmd bench examples
PACKAGES  := $(foreach m,$(MODULES),./$(patsubst .,,$(m))$(if $(filter .,$(m)),,/)...)
STORES    := ./sqlitelock ./redislock ./redislock/internal/quorum ./pglock
GO        ?= go
SEED      ?= 0
FOR       ?= 2m
MUTANTS   ?=
export CGO_ENABLED ?= 1

.PHONY: demo test check lint race live mutants bench interop torture servers

demo: ## two runs of one job: the first runs, the second is told who holds it
	$(GO) build -o bin/dibs ./cmd/dibs
	sh scripts/demo.sh bin/dibs

test: servers check ## everything, on a fresh machine too

check: lint race live mutants

servers: ## installs what the tests need (on Debian, as root), or prints the command
	sh scripts/servers.sh

lint: ## format, vet, staticcheck, modernizers, tidiness, other systems
	sh scripts/lint.sh $(MODULES)

race: ## every test under the race detector, but for the stores' laws in real time
	@echo "== tests under the race detector"
	$(GO) test -race -short -timeout 15m $(PACKAGES)

live: ## the stores' laws in real time, which mostly wait
	@echo "== laws in real time"
	$(GO) test -timeout 15m -p 3 -parallel 64 -run 'Conformance|TortureOnce|TortureStorm' $(STORES)
	@echo "== many leases"
	$(GO) test -timeout 15m -p 1 -run 'Many|HeapPer' $(STORES)
	@echo "== the command on every server"
	$(GO) test -timeout 15m -parallel 6 -run 'ScriptsOnServers' ./cmd/internal/cli

mutants: ## two mutants of every law must be caught; all of them: make mutants MUTANTS=all
	@echo "== mutants"
	@DIBS_MUTANTS='$(MUTANTS)' $(GO) test -count=1 -timeout 30m -v -run '^TestMutants$$' ./drivertest/mutants

bench: ## figures beside a raw floor of the same run; writes bench/RESULTS.md
	cd bench && $(GO) run . -write RESULTS.md

interop: ## locks shared with npm's pg, which it installs into bin/node
	npm install --prefix bin/node --no-audit --no-fund --silent pg
	DIBS_NODE_PATH=$(CURDIR)/bin/node/node_modules $(GO) test -count=1 -run TestNode ./pglock

torture: ## seeded processes under faults: make torture SEED=7 FOR=10m (SEED=0: a new one)
	sh scripts/torture.sh $(SEED) $(FOR)
