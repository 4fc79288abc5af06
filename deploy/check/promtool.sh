#!/bin/sh
# usage: promtool.sh
# Builds promtool with Go into .cache/bin when there is none on the PATH. `go install` refuses a module with replace
# and exclude directives, so promtool is built as a dependency of an empty module.
set -eu
version=v0.313.5
bin=$PWD/.cache/bin

if command -v promtool >/dev/null 2>&1; then exit 0; fi
if [ -x "$bin/promtool" ] && "$bin/promtool" --version 2>&1 | grep -qF "$version"; then exit 0; fi
if ! command -v go >/dev/null 2>&1; then
  echo "go is missing: promtool is built with Go (https://go.dev/dl); without it the alert rules of the chart are not run" >&2
  exit 1
fi
mkdir -p "$bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
go mod init promtool
go get "github.com/prometheus/prometheus/cmd/promtool@$version"
go build -trimpath -ldflags "-X github.com/prometheus/common/version.Version=$version" -o "$bin/promtool" \
  github.com/prometheus/prometheus/cmd/promtool
