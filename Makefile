# `make help` lists what there is. Everything works on a fresh machine with Rust (rustup) and Go.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# What is built outlives the clone: Go programs, cargo's target folder, cargo-deny.
XDG_CACHE_HOME ?= $(HOME)/.cache
export CAPASG_CACHE ?= $(XDG_CACHE_HOME)/capasg
# All tests run in a copy of the clone that is always at the same place, so that a new clone finds what an earlier one built.
# With a target folder of your own they run in the clone.
ifeq ($(origin CARGO_TARGET_DIR),undefined)
FIXED_TREE := scripts/fixed-tree
endif
export CARGO_TARGET_DIR ?= $(CAPASG_CACHE)/target
# A lock file that does not fit the manifests is updated at a desk and refused in CI.
LOCKED := $(if $(CI),--locked)

VERSION := v$(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
IMAGE ?= ghcr.io/capasg/cluster-api-provider-asg
CARGO_DENY_VERSION := 0.20.2
export CARGO_DENY := $(CAPASG_CACHE)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
CORE ?=
# Of `make simulate`.
SEEDS ?= 2000
FIRST ?= 0
# Of `make ranges`.
RANGES ?= 3
export CAPASG_CORE ?= $(CORE)
CAPASG := $(CARGO_TARGET_DIR)/debug/capasg
ENVIRONMENT := $(CARGO_TARGET_DIR)/debug/capasg-environment
CONFORMANCE := $(CARGO_TARGET_DIR)/debug/capasg-conformance

##@ Try it
.PHONY: demo
demo: release programs ## Show the lifecycle of one pool on a real control plane and a simulated AWS; KEEP=1 keeps it running
	@$(ENVIRONMENT) demo $(if $(filter 1,$(KEEP)),--keep)

.PHONY: demo-upgrade
demo-upgrade: release programs ## Show a safe upgrade: it waits for an image, a window and an approval, and nodes are verified; KEEP=1 keeps it running
	@$(ENVIRONMENT) demo-upgrade $(if $(filter 1,$(KEEP)),--keep)

.PHONY: demo-addons
demo-addons: release programs ## Show Helm add-ons: a chart on a cluster, a change before it is applied, a failure in words, drift; KEEP=1 keeps it running
	@$(ENVIRONMENT) demo-addons $(if $(filter 1,$(KEEP)),--keep)

.PHONY: road
road: release programs ## Run the commands of README.md with the controllers of Cluster API and CAPA, and moto in place of AWS
	@$(ENVIRONMENT) road

.PHONY: env
env: release programs ## Start the same environment and leave it to you until Ctrl-C
	@$(ENVIRONMENT) env

##@ Work on it
.PHONY: test
test: ## Before each commit: format, lints, licenses, and all tests, real control plane included
	@$(FIXED_TREE) scripts/test

.PHONY: test-all
test-all: ## Before a release: the same with long forms, both versions of core, 20 000 seeds, kills, mutations; hours
	@$(FIXED_TREE) scripts/test --all

.PHONY: conformance
conformance: release programs build-conformance ## Show every rule of the contract, one by one; CORE=v1.13.6 for that version of core
	@$(CONFORMANCE) run $(if $(CORE),--core $(CORE)) $(if $(RULES),--only $(RULES))

.PHONY: conformance-fast
conformance-fast: build-conformance ## The same without the control plane: what unit tests and simulations show of RULES=D8,D10
	@$(CONFORMANCE) run --fast $(if $(RULES),--only $(RULES))

.PHONY: simulate
simulate: ## Live through SEEDS generated lives of pools from FIRST on; SEED=n shows one, KILLS=1 dies at every call, TALLY=1 counts, MOVES=1 moves, UNINTERRUPTED=1 runs each reconcile at one instant
	@cargo run $(LOCKED) --quiet --profile simulate --package capasg-simulation --bin capasg-simulate -- \
	  $(if $(SEED),--trace $(SEED),--seeds $(SEEDS) --first $(FIRST)) $(if $(KILL),--kill $(KILL)) $(if $(KILLS),--kills) \
	  $(if $(TALLY),--tally) $(if $(MOVES),--moves) $(if $(UNINTERRUPTED),--uninterrupted)

.PHONY: ranges
ranges: ## Run RANGES ranges of 50 000 seeds whose first numbers are drawn at random, with a program built for this processor
	@scripts/ranges $(RANGES)

.PHONY: mutations
mutations: ## Break rules one by one in a copy of the tree; their tests have to notice. RULES="d8 d10" for some
	@scripts/mutations $(RULES)

.PHONY: mutations-simulate
mutations-simulate: ## Make known mistakes again, one by one: how many seeds until the simulation notices? MISTAKES="..." for some
	@scripts/mutations --simulate $(MISTAKES)

# The SDK of EC2 alone takes long to optimise; how fast it runs decides nothing here.
.PHONY: bench
bench: release programs ## Measure a release build with 100 pools of 5: calls, memory, processor time, latency
	@cargo build $(LOCKED) --release --package capasg
	@CAPASG_MANAGER="$(CARGO_TARGET_DIR)/release/capasg" cargo run $(LOCKED) --package capasg-e2e --bin capasg-bench

.PHONY: bench-addons
bench-addons: release programs ## Measure a release build of the add-on provider and CAAPH with 100 Clusters and 5 charts: time, memory, processor time, calls
	@cargo build $(LOCKED) --release --package capasg
	@CAPASG_MANAGER="$(CARGO_TARGET_DIR)/release/capasg" cargo run $(LOCKED) --package capasg-e2e --bin capasg-bench-addons

.PHONY: fmt
fmt: ## Format the Rust code
	@cargo fmt --all

.PHONY: clippy
clippy: ## Lint all targets; warnings are errors
	@cargo clippy --workspace --all-targets $(LOCKED) -- -D warnings

.PHONY: deny
deny: $(CARGO_DENY) ## Check licenses, sources and duplicates of the dependencies
	@$(CARGO_DENY) --log-level error $(LOCKED) check bans licenses sources

.PHONY: advisories
advisories: $(CARGO_DENY) ## Check the dependencies against the RustSec database, which is downloaded
	@$(CARGO_DENY) --log-level error $(LOCKED) check advisories

.PHONY: generate
generate: build build-conformance ## Write the definitions, and the pages that follow from the sources
	@$(CAPASG) crds --dir config/crd/bases
	@$(CAPASG) crds --addons --dir config/addons/crd
	@rm -rf docs/reference/api
	@$(CAPASG) crds --reference --dir docs/reference
	@$(CAPASG) crds --addons --reference --dir docs/reference
	@$(CONFORMANCE) contract > docs/contributors/contract.md
	@$(CONFORMANCE) compared > docs/contributors/compared.md
	@$(CONFORMANCE) conditions > docs/reference/conditions.md
	@$(CONFORMANCE) events > docs/reference/kubernetes-events.md

.PHONY: evidence
evidence: build-conformance ## Write the code and tests of each rule, of each problem of other systems, and each field of add-ons into out/
	@mkdir -p out
	@$(CONFORMANCE) contract --full > out/contract.md
	@$(CONFORMANCE) compared --full > out/compared.md
	@cargo test $(LOCKED) --quiet --workspace --test rules -- the_page_follows_from_what_is_recorded

.PHONY: docs
docs: ## Build the pages as a book into out/book, with its diagrams, and check its links; needs python3 and npm
	@scripts/docs

.PHONY: tools
tools: build-environment ## Build the Go programs of the control plane; the last line is their folder
	@$(ENVIRONMENT) tools

##@ Release it
.PHONY: release
release: ## Write what is published but images into out/release/<version>, and what clusterctl installs into out/<provider>/<version>
	@scripts/release out "$(VERSION)" "$(IMAGE):$(VERSION)"

.PHONY: version
version: # of the workspace, for the release workflow
	@echo "$(VERSION)"

.PHONY: image
image: ## Assemble the image for ARCHITECTURES (default: this machine's; "amd64 arm64") without a container engine into out/image
	@scripts/image out/image "$(VERSION)" $(ARCHITECTURES)

.PHONY: help
help: ## Show this
	@awk 'BEGIN { FS = ":.*##" } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*##/ { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: programs build build-environment build-conformance
programs: build build-environment
# `--workspace` although one program is wanted: another selection has other features, and would build all again.
build:
	@cargo build $(LOCKED) --workspace --bin capasg
build-environment:
	@cargo build $(LOCKED) --workspace --bin capasg-environment
build-conformance:
	@cargo build $(LOCKED) --workspace --bin capasg-conformance

# Debug, since it runs for seconds and builds in a third of the time; in a target folder that goes away afterwards.
$(CARGO_DENY):
	@echo "building cargo-deny $(CARGO_DENY_VERSION) (about 4 minutes, once)"
	@env -u CARGO_TARGET_DIR cargo install --debug --locked --quiet --version $(CARGO_DENY_VERSION) --root $(CAPASG_CACHE)/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny
