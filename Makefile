# Variables given on the command line (make up LINK_BOUNDS=advancing) reach every process through the environment.

# bash, so that the PATH below also finds the commands that make would start without a shell
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: alerts help setup tools check format test test-cluster chart chart-cluster contract soak bench up down restart status demo

bin := $(CURDIR)/node_modules/.bin
machine_path := $(subst $(bin):,,$(PATH))
export PATH := $(bin):$(machine_path)

# reduced or full: the sizes of the tests
SIZE ?= reduced
export TEST_SIZE := $(SIZE)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: ## install what package-lock.json names, Node 24 included
	@PATH="$(machine_path)" sh deploy/check/require.sh node npm
	@PATH="$(machine_path)" sh deploy/check/setup.sh

# what the local stack needs from the machine
tools:
	@sh deploy/check/require.sh java mvn

check: setup ## format, lint, types, import law, dead code
	@node deploy/check/check.ts

format: setup ## write every file in the format that check wants
	@node --run format

test: tools check ## check, then unit, integration and end-to-end tests at reduced sizes
	@sh deploy/check/require.sh python3 openssl
	@node deploy/check/run-tests.ts unit integration e2e

chart: setup ## the Helm chart: lint, renders, refused values, schemas of Kubernetes; installs helm and kubeconform
	@sh deploy/check/require.sh python3
	@sh deploy/charts/install-tools.sh
	@CHART=required vitest run --project unit test/support/chart

chart-cluster: setup ## install, change, take back and remove every example of the chart in the cluster of KUBECONFIG, whose nodes run nothing
	@node test/chart-cluster/main.ts

contract: tools setup ## the running interface against its own OpenAPI document (schemathesis, spectral)
	@sh deploy/check/require.sh python3
	@node test/contract/main.ts

test-cluster: tools setup ## tests on two shards of ClickHouse behind Distributed tables, SIZE=full for larger ones
	@node deploy/check/run-tests.ts cluster

soak: ## the same tests at full sizes
	@$(MAKE) --no-print-directory test SIZE=full

alerts: setup ## promtool, built by Go when there is none: check and test the rules of deploy/alerts
	@sh deploy/check/promtool.sh
	@TEST_SIZE=full vitest run --project unit test/support/watch/promtool.test.ts

bench: tools setup ## benchmarks, one line per result
	@node test/bench/main.ts

up: tools setup ## start servers and services in the background, write .local/env (FRESH=1: from empty folders)
	@node deploy/local/src/cli.ts up

down: setup ## stop what up started
	@node deploy/local/src/cli.ts down

restart: setup ## restart one service: make restart S=ingest
	@node deploy/local/src/cli.ts restart $(S)

status: setup ## what is running, and where
	@node deploy/local/src/cli.ts status

demo: tools setup ## a sample through the whole pipeline, compared at the end (KEEP=1: leave it running)
	@node test/demo/main.ts
