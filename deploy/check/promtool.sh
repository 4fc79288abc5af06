#!/bin/sh
# usage: promtool.sh [prometheus]
# Builds promtool, or Prometheus itself, with Go into .cache/bin when there is none on the PATH. `go install` refuses a module
# with replace and exclude directives, so the program is built as a dependency of an empty module.
set -eu
program=${1:-promtool}
version=v0.313.5
bin=$PWD/.cache/bin

if command -v "$program" >/dev/null 2>&1; then exit 0; fi
if [ -x "$bin/$program" ] && "$bin/$program" --version 2>&1 | grep -qF "$version"; then exit 0; fi
if ! command -v go >/dev/null 2>&1; then
  echo "go is missing: $program is built with Go (https://go.dev/dl)" >&2
  exit 1
fi
mkdir -p "$bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
go mod init "$program"
go get "github.com/prometheus/prometheus/cmd/$program@$version"
# static targets are enough here, without the clients of clouds
go build -trimpath -tags remove_all_sd -ldflags "-X github.com/prometheus/common/version.Version=$version" -o "$bin/$program" \
  "github.com/prometheus/prometheus/cmd/$program"
