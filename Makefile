# Every command CI runs is a target here, so that a red CI can be repeated by hand. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CHECK := go tool -modfile=tools/check.mod
LINT  := go tool -modfile=tools/lint.mod
BUF   := tools/npm/node_modules/.bin/buf
GO_FILES = $(shell git ls-files --cached --others --exclude-standard '*.go' | grep -vE '\.(pb|connect)\.go$$' | xargs -r ls 2>/dev/null)

FUZZTIME  ?= 10s
BENCH     ?= .
BENCHTIME ?= 1s
COUNT     ?= 1

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# --- before each commit: seconds -------------------------------------------------------------------------------------

.PHONY: check
check: fmt vet fix staticcheck arch short ## format, vet, modernisers, staticcheck, import rules, short tests

.PHONY: fmt
fmt: ## fail when a file is not gofumpt-formatted
	@bad="$$($(CHECK) gofumpt -l $(GO_FILES))"; \
	if [ -n "$$bad" ]; then echo "not gofumpt-formatted (run 'make format'):"; echo "$$bad"; exit 1; fi

.PHONY: format
format: ## rewrite the Go files with gofumpt
	$(CHECK) gofumpt -w $(GO_FILES)

.PHONY: vet
vet: ## go vet
	go vet ./...

.PHONY: fix
fix: ## fail when a modern spelling exists (go fix would change a file)
	@go fix -diff ./...

.PHONY: staticcheck
staticcheck: ## honnef.co staticcheck
	$(CHECK) staticcheck ./...

.PHONY: arch
arch: ## the import map and the repository's rules, as tests
	go test ./tests/arch

.PHONY: short
short: ## the tests that take seconds
	go test -short ./...

# --- what CI adds ----------------------------------------------------------------------------------------------------

.PHONY: ci
ci: ## everything CI runs, with the same script
	.ci/run

.PHONY: lint
lint: ## golangci-lint with the import map as depguard rules
	$(LINT) golangci-lint run

.PHONY: tidy
tidy: ## fail when go.mod or go.sum is not what the code needs
	go mod tidy -diff

.PHONY: test
test: ## all tests
	go test ./...

.PHONY: race
race: ## all tests under the race detector
	go test -race ./...

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@tools/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## the benchmarks of tests/bench; BENCH=regexp BENCHTIME=1s COUNT=1
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(COUNT) -benchmem ./tests/bench

# --- generated code --------------------------------------------------------------------------------------------------

$(BUF): tools/npm/package-lock.json
	cd tools/npm && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

.PHONY: gen
gen: $(BUF) ## protobuf: format, then generate the code beside each proto file
	$(BUF) format -w
	$(BUF) generate

.PHONY: gen-lint
gen-lint: $(BUF) ## protobuf: buf lint
	$(BUF) lint

.PHONY: gen-diff
gen-diff: $(BUF) ## fail when the generated code is not what the proto files give
	@tools/gen-diff.sh $(BUF)
