# Hykube. `make help` lists the targets; what they do lives in hack/ and tests/.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
SIM_VERSION := 0.1.0
PORT ?= 6443
comma := ,

# SQLite is C, so cgo is on. VERSION replaces the stamp that `go build` would take from git.
export CGO_ENABLED := 1
# Without its version `kubectl version` fails.
KUBERNETES := $(shell sed -n 's/^const kubernetesVersion = "\(.*\)"/\1/p' server/version.go)
# Go asks the linker to export every function. No library calls back, and the names make up a fifth of the binary.
SMALL := $(if $(filter Linux,$(shell uname -s)),-extldflags=-Wl$(comma)--no-export-dynamic)
LDFLAGS := -s -w $(SMALL) -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) -X github.com/hykube/hykube/server.Version=$(VERSION) -X github.com/hykube/hykube/internal/cli/version.Version=$(VERSION)

# The differential test: how many generated stories, how many of generated types, and from which seed on.
CASES ?= 250
SHAPES ?= 120
SEED ?= 1

# The rounds of make chaos.
ROUNDS ?= 200

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/: hykube, kubectl-hykube, and the programs of the tests.
	go build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/... ./tests/cmd/hykube-kubectl
	go build -buildvcs=false -ldflags '-s -w -X main.version=$(SIM_VERSION)' -o bin/ ./tests/cmd/simcloud ./tests/cmd/terraform-provider-sim

.PHONY: mirror
mirror: build ## Lay out a provider mirror with two real plugins in .cache/mirror.
	@SIM_VERSION=$(SIM_VERSION) hack/mirror.sh

.PHONY: demo
demo: build mirror ## Install providers, plan, apply, change and destroy against a simulated cloud.
	@hack/demo.sh

.PHONY: run
run: build mirror ## Serve in the foreground, on PORT (6443), and say what to type next.
	@PORT=$(PORT) hack/run.sh

.PHONY: test
test: build mirror ## Run every test, from units to end-to-end stories; the last lines list skipped and flaky tests.
	HYKUBE_BIN_DIR=$(CURDIR)/bin HYKUBE_MIRROR_DIR=$(CURDIR)/.cache/mirror hack/test.sh

.PHONY: test-differential
test-differential: build mirror ## Compare Hykube with tofu or terraform, in every story and 370 generated ones.
	HYKUBE_BIN_DIR=$(CURDIR)/bin HYKUBE_MIRROR_DIR=$(CURDIR)/.cache/mirror HYKUBE_TEST_REQUIRES=terraform-or-tofu go test -timeout 90m ./tests/differential -long -cases $(CASES) -shapes $(SHAPES) -seed $(SEED)

.PHONY: test-watch
test-watch: build mirror ## Open and close 10,000 watches under load, and restart a server 20 times under Argo CD's cache.
	go test ./server/storage -run Watch -opens 10000
	HYKUBE_BIN_DIR=$(CURDIR)/bin HYKUBE_MIRROR_DIR=$(CURDIR)/.cache/mirror go test -timeout 60m ./tests/clients -opens 10000 -restarts 20

.PHONY: chaos
chaos: build mirror ## Kill, stop and cut off servers at random, ROUNDS (200) for each database, from SEED (1) on.
	HYKUBE_BIN_DIR=$(CURDIR)/bin HYKUBE_MIRROR_DIR=$(CURDIR)/.cache/mirror go test -v -count 1 -timeout 0 ./tests/chaos -rounds $(ROUNDS) -seed $(SEED) -workers 2

.PHONY: test-kubernetes
test-kubernetes: build mirror ## Build Kubernetes' API server, and install the Helm chart there.
	HYKUBE_BIN_DIR=$(CURDIR)/bin HYKUBE_MIRROR_DIR=$(CURDIR)/.cache/mirror go test -timeout 30m ./tests/deploy -run TestKubernetes -kubernetes

.PHONY: test-mutants
test-mutants: ## Plant every bug of tests/mutants and expect tests to fail, then mutate PACKAGES.
	go test -timeout 120m -v ./tests/mutants -all
	hack/mutate.sh $(PACKAGES)

.PHONY: check
check: ## Look for what tests do not see: format, lint, stale generated code, known vulnerabilities.
	@hack/check.sh

.PHONY: generate
generate: ## Make the generated code and the CLI reference anew.
	@hack/generate.sh

.PHONY: bench
bench: build mirror ## Measure, beside Terraform, and write docs/performance.md (half an hour).
	@go run ./tests/bench -bin bin -mirror .cache/mirror -record tests/bench/results

.PHONY: bench-large
bench-large: build mirror ## Measure a namespace with 100,000 resources.
	@go run ./tests/bench -bin bin -mirror .cache/mirror -estate 100000

.PHONY: bench-neighbour
bench-neighbour: build mirror ## Measure how a hostile namespace delays the plans and reads of another.
	@go run ./tests/bench -bin bin -mirror .cache/mirror -neighbour

.PHONY: bench-contributors
bench-contributors: build mirror ## Measure what it costs to know the many users who wrote a resource.
	@go run ./tests/bench -bin bin -mirror .cache/mirror -contributors

.PHONY: bench-kinds
bench-kinds: build mirror ## Measure what a provider with 1,500 kinds costs.
	@go run ./tests/bench -bin bin -mirror .cache/mirror -kinds

.PHONY: bench-short
bench-short: build mirror ## Measure start, memory, CPU and one resource, in under a minute.
	@go run ./tests/bench -bin bin -mirror .cache/mirror -short

.PHONY: release
release: ## Build a release in dist/: archives for all platforms, checksums, SBOMs, chart, krew manifest.
	@go run ./hack/release -version '$(VERSION)' -out dist

.PHONY: clean
clean: ## Remove bin/, dist/ and .cache/, the data of `make run` included.
	rm -rf bin dist .cache
