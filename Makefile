# Variables on the command line (make up LINK_BOUNDS=advancing) reach every process through the environment.

# bash, because make starts simple commands without a shell, and then ignores the PATH below
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*/\1/p' Makefile)

bin := $(CURDIR)/node_modules/.bin
machine_path := $(subst $(bin):,,$(PATH))
export PATH := $(bin):$(machine_path)

# sizes of the tests: reduced or full
SIZE ?= reduced
export TEST_SIZE := $(SIZE)

##@ Everyday

help: ## list the targets
	@echo "make TARGET [NAME=value]"
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

setup: ## install the packages of package-lock.json, Node 24 included
	@PATH="$(machine_path)" sh deploy/check/require.sh node npm
	@PATH="$(machine_path)" sh deploy/check/setup.sh

up: tools setup ## start servers and services in the background, write .local/env (FRESH=1: from empty folders)
	@node deploy/local/src/cli.ts up

status: setup ## show what runs and its addresses; fails and names what is down
	@node deploy/local/src/cli.ts status

restart: setup ## restart one process: make restart S=ingest
	@node deploy/local/src/cli.ts restart $(S)

down: setup ## stop what up and demo left running
	@node deploy/local/src/cli.ts down

demo: tools setup ## send a sample through everything and compare (SMALL=1: a tenth of it, KEEP=1: leave it running)
	@node test/demo/main.ts

check: setup ## format, lint, types, import law, dead code
	@node deploy/check/check.ts

format: setup ## format every file as check wants it
	@node --run format

unit: setup ## unit tests of a folder or file: make unit T=packages/bus
	@vitest run --project 'unit*' $(T)

it: tools setup ## integration tests whose path has a word: make it T=queue (KEEP=1 keeps logs of a failure)
	@vitest run --project integration $(T)

e2e: tools setup ## the same of end-to-end tests: make e2e T=walks
	@vitest run --project e2e $(T)

faults: tools setup ## the same of long tests of faults: make faults T=brokers
	@vitest run --project 'faults*' $(T)

# the tests that compare these files, or write them
made_files = $(shell grep -rl --include='*.test.ts' toMatchFileSnapshot packages services deploy test)

generate: setup ## write the files that are made from code (CHECK=1: only compare)
	@vitest run --project 'unit*' --update=$(if $(CHECK),none,all) $(made_files)
	@command -v helm >/dev/null || test -x .cache/bin/helm || echo "left out: the goldens of the chart, since there is no helm ('make chart' builds it)"

docs: setup ## build the site of the pages into .local/docs, with search; dead links fail
	@sh deploy/docs/build.sh

hooks: ## format staged files before each commit
	@git config core.hooksPath .githooks
	@echo "git runs .githooks/pre-commit before each commit; undo: git config --unset core.hooksPath"

##@ Verify

# checks what the local stack needs
tools:
	@sh deploy/check/require.sh linux-x64 java mvn

test: tools check ## check, then unit, integration and end-to-end tests: every rule and promise, each once
	@sh deploy/check/require.sh python3 openssl
	@node deploy/check/run-tests.ts tests unit unit-apart integration e2e

test-faults: tools setup ## the long tests: faults, brokers, TLS, sentinels, image, chart, foreign programs
	@sh deploy/check/require.sh python3 openssl
	@node deploy/check/run-tests.ts faults faults faults-apart

test-full: ## both suites at full sizes
	@$(MAKE) --no-print-directory --keep-going test test-faults SIZE=full

contract: tools setup ## compare the running API with its OpenAPI document (schemathesis, spectral)
	@sh deploy/check/require.sh python3
	@node test/contract/main.ts

test-cluster: tools setup ## run tests on two shards of ClickHouse
	@node deploy/check/run-tests.ts cluster cluster

chart: setup ## check the Helm chart: lint, renders, refused values, schemas; builds helm and kubeconform when missing
	@sh deploy/check/require.sh python3
	@sh deploy/charts/install-tools.sh
	@CHART=required vitest run --project unit test/chart

cluster: tools setup ## try the image on real pods of the cluster of KUBECONFIG: install, upgrade, faults, uninstall under load
	@node test/kubernetes/main.ts

alerts: setup ## check and test the alert rules with promtool, built by Go when missing
	@sh deploy/check/go-program.sh promtool
	@TEST_SIZE=full vitest run --project unit test/documents/promtool.test.ts

bench: tools setup ## measure, one line for each result (BENCH=name[,name]: only these)
	@node test/bench/main.ts

##@ Release

image: setup ## build the image with buildah, podman or docker, into .local/image
	@node deploy/image/main.ts

sbom: setup ## write the components of the image with their licences (CycloneDX) to dist
	@node deploy/release/release.ts sbom

release: setup ## write image, chart, client, SBOM and checksums to dist (PARTIAL=1: without what lacks its tool)
	@PATH="$(CURDIR)/.cache/bin:$$PATH" node deploy/release/release.ts
