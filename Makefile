# Kivuko's commands, for any machine with Go. `make` lists them.
# PostgreSQL is found or installed; the Temporal server, the chains' nodes and the
# mobile money sandbox are built from Go code. No containers.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

GO ?= go
# Extra arguments for `go test`, for example TESTFLAGS='-run OnRamp -v'.
TESTFLAGS ?=
# The packages of the product, of the local stack and of its nodes that are tested. They are started in this order: first
# what takes longest, so that it doesn't run alone at the end.
PACKAGES ?= ./workflows ./store ./api ./...
DEV_PACKAGES ?= ./e2e ./...
NODE_PACKAGES ?= ./...
# Tests run without go vet, which would read all of the Temporal server while they wait for it: the linters have all of its checks.
go_test := test -vet=off
# The folders that are Go modules.
MODULES := . dev dev/nodes dev/docker

GOLANGCI_VERSION := v2.15.0
# Published payloads of operators and networks may not be copied into the repository. Where the folder is missing, the
# tests that need it are skipped.
ifneq ($(wildcard $(CURDIR)/../shared/fixtures),)
export KIVUKO_FIXTURES ?= $(abspath $(CURDIR)/../shared/fixtures)
endif
# Time limits for one test binary. They only end what hangs: two slow cores need half of them.
TEST_TIMEOUT := 45m
CRASH_TIMEOUT := 50m
RACE_TIMEOUT := 40m

bin := $(CURDIR)/bin
tool = $(GO) tool -modfile=$(CURDIR)/dev/tools/go.mod

# progress runs a command that may be silent for minutes, and prints the elapsed time every 20 seconds.
define progress
progress() {
	local what=$$1 began=$$SECONDS said=0 pid code=0; shift
	"$$@" & pid=$$!
	trap 'kill $$pid 2>/dev/null' INT TERM
	while kill -0 $$pid 2>/dev/null; do
		sleep 0.2
		if (( SECONDS - began >= said + 20 )); then
			said=$$(( SECONDS - began )); echo "  $$what … $$said s"
		fi
	done
	wait $$pid || code=$$?
	trap - INT TERM
	return $$code
}
endef

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort -t: -k1,1 | awk -F ':.*## ' '{printf "  make %-14s  %s\n", $$1, $$2}'

.PHONY: check-go
check-go:
	@want=$$(sed -n 's/^go //p' go.mod)
	if ! command -v $(GO) >/dev/null; then
		echo "Kivuko needs Go $$want or newer, and there is no '$(GO)' in PATH: install it from your system's packages or from the Go project." >&2
		exit 1
	fi
	have=$$(cd / && GOTOOLCHAIN=local $(GO) env GOVERSION | sed 's/^go//; s/ .*//')
	if [ "$$(printf '%s\n%s\n' "$$want" "$$have" | sort -V | tail -n 1)" != "$$have" ]; then
		echo "Kivuko needs Go $$want or newer, and this is Go $$have." >&2
		exit 1
	fi

.PHONY: build
build: check-go ## compile the product and the local stack into bin/
	@$(progress)
	mkdir -p "$(bin)"
	if [ ! -x "$(bin)/kivuko-dev" ]; then
		echo "building the Temporal server: the first time takes about six minutes on two cores"
	fi
	# A checkout that git can't read (another user's, or no git here) must not
	# fail the build; the binary then does not know its commit.
	stamp=()
	if ! git status --porcelain >/dev/null 2>&1; then stamp=(-buildvcs=false); fi
	progress "building the local stack" $(GO) -C dev build "$${stamp[@]}" -o "$(bin)/kivuko-dev" .
	progress "building Kivuko" $(GO) build "$${stamp[@]}" -o "$(bin)/kivuko" .

.PHONY: run
run: build ## run the whole stack on this machine until Ctrl-C; the data is kept
	@exec "$(bin)/kivuko-dev" run

.PHONY: clean-data
clean-data: ## delete the data of `make run`
	@if [ -x "$(bin)/kivuko-dev" ]; then
		"$(bin)/kivuko-dev" clean-data
	else
		rm -rf .local
	fi

bin/with-postgres: check-go FORCE
	@mkdir -p "$(bin)"
	$(GO) -C dev build -buildvcs=false -o "$(bin)/with-postgres" ./cmd/with-postgres

.PHONY: FORCE
FORCE:

# go_tests runs `go test` with the given arguments in three modules, one after the other: the product's and the nodes' tests compute,
# and would delay those of the whole stack, which wait for blocks. The first call installs PostgreSQL where it is missing.
define go_tests
go_tests() {
	local code=0 postgres=("$(bin)/with-postgres" --)
	"$${postgres[@]}" $(GO) $(go_test) "$$@" $(PACKAGES) || code=1
	$(GO) -C dev/nodes $(go_test) "$$@" $(NODE_PACKAGES) || code=1
	"$${postgres[@]}" $(GO) -C dev $(go_test) "$$@" $(DEV_PACKAGES) || code=1
	return $$code
}
endef

.PHONY: build-tests
build-tests: check-go
	@$(progress)
	echo "building the tests: the first time takes about eight minutes on two cores, most of it for the Temporal server"
	compile() {
		$(GO) list -e -export -test -deps $(PACKAGES)
		$(GO) -C dev/nodes list -e -export -test -deps $(NODE_PACKAGES)
		$(GO) -C dev list -e -export -test -deps $(DEV_PACKAGES)
	} >/dev/null 2>&1
	progress "building the tests" compile || true # the tests report a compile error

.PHONY: test
test: bin/with-postgres build-tests ## run all tests, with a sample of the crash trials
	@if ! command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null; then
		echo "Chromium is not on this machine, so the tests in a browser are skipped: apt-get install chromium"
	fi
	$(go_tests)
	go_tests -timeout $(TEST_TIMEOUT) $(TESTFLAGS)

# All crash trials; `make test` runs a sample. KIVUKO_E2E_CRASHES='Sweep|OpenOrder' runs those alone.
.PHONY: test-crash
test-crash: bin/with-postgres ## kill processes before and after every side effect; about ten minutes
	@$(progress)
	export KIVUKO_E2E_CRASHES=$${KIVUKO_E2E_CRASHES:-all}
	progress "killing processes" "$(bin)/with-postgres" -- $(GO) -C dev $(go_test) -count=1 -timeout $(CRASH_TIMEOUT) -run '^(TestCrashPoints|TestSalesSurviveTheDeathOfWorkers)$$' $(TESTFLAGS) ./e2e

.PHONY: race
race: bin/with-postgres ## run all tests with the race detector (needs a C compiler)
	@command -v $${CC:-cc} >/dev/null || { echo "the race detector needs a C compiler, and there is no $${CC:-cc}" >&2; exit 1; }
	$(go_tests)
	go_tests -race -timeout $(RACE_TIMEOUT) $(TESTFLAGS)

# KIVUKO_E2E_SEED repeats a plan; each run prints its seed.
TRANSFERS ?= 1000

.PHONY: soak-transfers
soak-transfers: bin/with-postgres ## send TRANSFERS (1,000) transfers on three chains with injected failures
	@KIVUKO_E2E_TRANSFERS=$(TRANSFERS) "$(bin)/with-postgres" -- $(GO) -C dev $(go_test) -count=1 -v -timeout 3h -run '^TestTransfersSurviveAPlan$$' ./e2e

# SOAK is the duration, SEED selects the plan of actions and failures; each run prints its seed.
SOAK ?= 10m
SEED ?=

.PHONY: soak
soak: build ## buy, sell, send, propose and serve the desk on three chains for SOAK (10m) with injected failures; SEED repeats a plan, ONLY=swap plans one kind
	@$(GO) -C dev build -buildvcs=false -o "$(bin)/kivuko-soak" ./cmd/kivuko-soak
	exec "$(bin)/kivuko-soak" -root "$(CURDIR)" -for $(SOAK) $(if $(SEED),-seed $(SEED)) $(if $(ONLY),-only "$(ONLY)")

.PHONY: replay
replay: check-go ## replay all recorded histories against today's workflows
	@if [ ! -d workflows ]; then echo "no workflows yet"; exit 0; fi
	$(GO) $(go_test) -count=1 -run '^TestRecordedHistoriesReplay$$' -v ./workflows/

# BENCHFLAGS='-quick' is one short round; '-only opening,throughput' runs some parts
# (suites, deposits, sending, history, parked, opening, throughput, selling).
# KIVUKO_BENCH_ORDERS=1000000,10000000 measures both sizes: filling the larger takes about half an hour.
BENCHFLAGS ?=

.PHONY: bench
bench: build ## measure against bare Temporal, plain SQL, bare HTTP and bare drivers; about ten minutes
	@$(GO) -C dev build -buildvcs=false -o "$(bin)/kivuko-bench" ./cmd/kivuko-bench
	exec "$(bin)/kivuko-bench" -root "$(CURDIR)" $(BENCHFLAGS)

# Third-party nodes and libraries are installed from npm into a temporary directory, without their install
# scripts. Without npm their tests are skipped, with a message.
ANVIL_VERSION := 1.7.1
STANDARD_WEBHOOKS_VERSION := 1.1.1
OPENAPI_TYPESCRIPT_VERSION := 7.13.0
TYPESCRIPT_VERSION := 5.9.3
TRONWEB_VERSION := 6.5.1
SAFE_KIT_VERSION := 8.0.7
ETHERS_VERSION := 6.17.0

.PHONY: conformance
conformance: bin/with-postgres ## check every chain driver and the operator's sandbox against the common suites and third-party nodes
	@$(go_tests)
	peers=$$(mktemp -d)
	trap 'rm -rf "$$peers"' EXIT
	if command -v npm >/dev/null; then
		anvil=anvil-$$(node -p 'process.platform + "-" + ({x64: "amd64"}[process.arch] || process.arch)')
		# In one call: npm removes packages of an earlier call that no file lists.
		npm install --silent --no-audit --no-fund --no-save --ignore-scripts --prefix "$$peers" \
			"@foundry-rs/$$anvil@$(ANVIL_VERSION)" "standardwebhooks@$(STANDARD_WEBHOOKS_VERSION)" \
			"openapi-typescript@$(OPENAPI_TYPESCRIPT_VERSION)" "typescript@$(TYPESCRIPT_VERSION)" "tronweb@$(TRONWEB_VERSION)" \
			"@safe-global/protocol-kit@$(SAFE_KIT_VERSION)" "ethers@$(ETHERS_VERSION)"
		export KIVUKO_ANVIL="$$peers/node_modules/@foundry-rs/$$anvil/bin/anvil"
		export KIVUKO_STANDARD_WEBHOOKS="$$peers/node_modules/standardwebhooks"
		export KIVUKO_OPENAPI_TYPESCRIPT="$$peers/node_modules/.bin"
		export KIVUKO_TRONWEB="$$peers"
		export KIVUKO_SAFE_KIT="$$peers/node_modules"
		export KIVUKO_PEERS=1 # makes the test of the Solana machine fetch litesvm
	else
		echo "npm is missing: the tests against third-party nodes are skipped"
	fi
	go_tests -count=1 -run 'Conformance|^Test(Tron|Ethereum|Solana)' $(TESTFLAGS)

# No container engine is needed: the Dockerfile's linter and the compose file's schema are libraries, and the binary
# runs from the image's files alone. KIVUKO_IMAGE_FRESH=1 compiles the second of the two builds without any cache.
.PHONY: check-docker
check-docker: bin/with-postgres ## check the image and the deployment in docker/ (as root, because the image's files are run)
	@"$(bin)/with-postgres" -- $(GO) -C dev/docker $(go_test) -count=1 -v -timeout $(TEST_TIMEOUT) $(TESTFLAGS) ./... | grep -vE '^=== (RUN|PAUSE|CONT|NAME)'

# golangci-lint is compiled at a pinned version: its authors advise against a tool directive.
bin/golangci-lint: check-go FORCE
	@$(progress)
	if ! "$(bin)/golangci-lint" version 2>/dev/null | grep -q ' $(GOLANGCI_VERSION:v%=%) '; then
		mkdir -p "$(bin)"
		echo "building golangci-lint $(GOLANGCI_VERSION): takes about six minutes on two cores"
		GOBIN="$(bin)" progress "building golangci-lint" $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	fi

.PHONY: lint
lint: workflowcheck lint-only ## all linters, on all modules

.PHONY: lint-only
lint-only: bin/golangci-lint
	@"$(bin)/golangci-lint" config verify
	code=0
	for module in $(MODULES); do
		(cd $$module && "$(bin)/golangci-lint" run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...) || code=1
	done
	exit $$code

.PHONY: workflowcheck
workflowcheck: check-go ## look for non-determinism in the call trees of the workflows
	@if [ ! -d workflows ]; then echo "no workflows yet"; exit 0; fi
	config=()
	if [ -f workflowcheck.yaml ]; then config=(-config workflowcheck.yaml); fi
	$(tool) workflowcheck "$${config[@]}" ./workflows/...

.PHONY: fmt
fmt: bin/golangci-lint ## format all Go files
	@for module in $(MODULES); do (cd $$module && "$(bin)/golangci-lint" fmt --config "$(CURDIR)/.golangci.yml" ./...); done

.PHONY: check-fmt
check-fmt: bin/golangci-lint ## fail when a Go file is not formatted
	@code=0
	for module in $(MODULES); do (cd $$module && "$(bin)/golangci-lint" fmt --diff --config "$(CURDIR)/.golangci.yml" ./...) || code=1; done
	if [ $$code -ne 0 ]; then echo "run make fmt" >&2; fi
	exit $$code

.PHONY: generate
generate: bin/with-postgres ## write the generated files anew
	@"$(bin)/with-postgres" -- bash -euc 'for module in $(MODULES); do $(GO) -C $$module generate ./...; done'

# fingerprint lists all tracked files and those that git would add, with their hashes.
fingerprint = git ls-files -z --cached --others --exclude-standard | xargs -0 -r sha256sum 2>/dev/null | sort -k 2

.PHONY: verify
verify: check-go ## fail when a generated file is not current
	@before=$$($(fingerprint) || true)
	$(MAKE) --no-print-directory generate
	after=$$($(fingerprint) || true)
	if [ "$$before" != "$$after" ]; then
		echo "these generated files were out of date and have been updated; commit them:" >&2
		diff <(echo "$$before") <(echo "$$after") | sed -n 's/^[<>] [0-9a-f]*  /  /p' | sort -u >&2
		exit 1
	fi
