#!/bin/sh
# usage: go-program.sh promtool|prometheus|kube-state-metrics
# Builds a program with Go into .cache/bin when there is none on the PATH. `go install` refuses a module with replace and
# exclude directives, so the program is built as a dependency of an empty module.
set -eu
program=$1
bin=$PWD/.cache/bin

case $program in
promtool | prometheus) version=v0.313.5 package=github.com/prometheus/prometheus/cmd/$program ;;
kube-state-metrics) version=v2.18.0 package=k8s.io/kube-state-metrics/v2 ;;
*) echo "go-program.sh: $program is not known" >&2 && exit 1 ;;
esac

if command -v "$program" >/dev/null 2>&1; then exit 0; fi
for flag in --version version; do
  if [ -x "$bin/$program" ] && "$bin/$program" "$flag" 2>&1 | grep -qF "$version"; then exit 0; fi
done
if ! command -v go >/dev/null 2>&1; then
  echo "go is missing: $program is built with Go (https://go.dev/dl)" >&2
  exit 1
fi
mkdir -p "$bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
go mod init "$program"
go get "$package@$version"
# static targets are enough here, without the clients of clouds
go build -trimpath -tags remove_all_sd -ldflags "-X github.com/prometheus/common/version.Version=$version" -o "$bin/$program" \
  "$package"
