# What a person runs. `make test` is what CI runs.

SHELL     := /bin/sh
# The modules, from the ground up. tools is for building only.
MODULES   := . sqlitelock cmd bench
GO        ?= go
SEED      ?= 0
FOR       ?= 2m
export CGO_ENABLED ?= 1

.PHONY: demo test check lint race mutants bench torture servers

demo: ## two runs of one job: the first runs, the second is told who holds it
	$(GO) build -o bin/dibs ./cmd/dibs
	sh scripts/demo.sh bin/dibs

test: servers check ## everything, on a fresh machine too

check: lint race mutants

servers: ## installs what the tests need (on Debian, as root), or prints the command
	sh scripts/servers.sh

lint: ## format, vet, staticcheck, modernizers, tidiness, other systems
	sh scripts/lint.sh $(MODULES)

race: ## the tests of every module under the race detector
	@for m in $(MODULES); do \
		echo "== test $$m"; \
		(cd $$m && $(GO) test -race -timeout 12m ./...) || exit 1; \
	done

mutants: ## every law's mutant must be caught
	@echo "== mutants"
	$(GO) test -count=1 -timeout 12m -v -run 'TestMutants' ./drivertest/mutants | grep -v '^=== '

bench: ## figures beside a raw floor of the same run; writes bench/RESULTS.md
	cd bench && $(GO) run . -write RESULTS.md

torture: ## seeded processes under faults: make torture SEED=7 FOR=10m (SEED=0: a new one)
	sh scripts/torture.sh $(SEED) $(FOR)
