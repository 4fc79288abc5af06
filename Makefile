# Variables on the command line (make up LINK_BOUNDS=advancing) reach every process through the environment.

# bash, because make starts simple commands without a shell, and then ignores the PATH below
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: alerts pictures operator-pictures image cluster release sbom help setup tools check format test test-faults test-full test-cluster chart chart-cluster contract bench up down restart status demo

bin := $(CURDIR)/node_modules/.bin
machine_path := $(subst $(bin):,,$(PATH))
export PATH := $(bin):$(machine_path)

# sizes of the tests: reduced or full
SIZE ?= reduced
export TEST_SIZE := $(SIZE)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: ## install the packages of package-lock.json, Node 24 included
	@PATH="$(machine_path)" sh deploy/check/require.sh node npm
	@PATH="$(machine_path)" sh deploy/check/setup.sh

# checks what the local stack needs
tools:
	@sh deploy/check/require.sh linux-x64 java mvn

check: setup ## format, lint, types, import law, dead code
	@node deploy/check/check.ts

format: setup ## format every file as check wants it
	@node --run format

# the tests that compare these files, or write them
made_files = $(shell grep -rl --include='*.test.ts' toMatchFileSnapshot packages services deploy test)

generate: setup ## write every file that is made from code: client types, schemas, data dictionary, users.xml, chart values, goldens (CHECK=1: only compare)
	@vitest run --project unit --update=$(if $(CHECK),none,all) $(made_files)
	@command -v helm >/dev/null || test -x .cache/bin/helm || echo "left out: the goldens of the chart, since there is no helm ('make chart' builds it)"

test: tools check ## check, then unit, integration and end-to-end tests: every rule and promise, each once
	@sh deploy/check/require.sh python3
	@node deploy/check/run-tests.ts tests unit unit-apart integration e2e

test-faults: tools setup ## the long tests: faults, brokers, TLS, sentinels, image, chart, foreign programs
	@sh deploy/check/require.sh python3 openssl
	@node deploy/check/run-tests.ts faults faults

test-full: ## both suites at full sizes
	@$(MAKE) --no-print-directory test test-faults SIZE=full

chart: setup ## the Helm chart: lint, renders, refused values, schemas of Kubernetes; installs helm and kubeconform
	@sh deploy/check/require.sh python3
	@sh deploy/charts/install-tools.sh
	@CHART=required vitest run --project unit test/chart

chart-cluster: setup ## install, upgrade, roll back and remove every chart example in the cluster of KUBECONFIG (nodes that run nothing)
	@node test/chart-cluster/main.ts

image: setup ## the image, with buildah, podman or docker, as an archive in .local/image
	@node deploy/image/main.ts

cluster: tools setup ## the image on real pods in the cluster of KUBECONFIG: install, upgrade, faults and uninstall under load
	@node test/kubernetes/main.ts

contract: tools setup ## the running interface against its own OpenAPI document (schemathesis, spectral)
	@sh deploy/check/require.sh python3
	@node test/contract/main.ts

test-cluster: tools setup ## tests on two shards of ClickHouse behind Distributed tables, SIZE=full for larger ones
	@node deploy/check/run-tests.ts cluster cluster

sbom: setup ## the components of the image with their licences (CycloneDX), in dist
	@node deploy/release/release.ts sbom

release: setup ## image, chart archive, npm archive of the client, SBOM and checksums in dist, from a clean tree whose versions agree
	@PATH="$(CURDIR)/.cache/bin:$$PATH" node deploy/release/release.ts

alerts: setup ## check and test the alert rules of the chart with promtool (built by Go when it is missing)
	@sh deploy/check/go-program.sh promtool
	@TEST_SIZE=full vitest run --project unit test/documents/promtool.test.ts

pictures: tools setup ## draw the picture of the dashboard for support anew
	@node test/pictures/main.ts

operator-pictures: tools setup ## draw the pictures of the operators' dashboards anew, from minutes of work under Prometheus (built by Go when it is missing)
	@sh deploy/check/go-program.sh prometheus
	@node test/pictures/operators/main.ts

bench: tools setup ## benchmarks, one line per result
	@node test/bench/main.ts

up: tools setup ## start servers and services in the background, write .local/env (FRESH=1: from empty folders)
	@node deploy/local/src/cli.ts up

down: setup ## stop everything that up started
	@node deploy/local/src/cli.ts down

restart: setup ## restart one service: make restart S=ingest
	@node deploy/local/src/cli.ts restart $(S)

status: setup ## show what runs, and its addresses
	@node deploy/local/src/cli.ts status

demo: tools setup ## send a sample through the whole pipeline and compare the result (KEEP=1: leave it running)
	@node test/demo/main.ts
