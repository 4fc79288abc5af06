#!/bin/sh
# usage: install-tools.sh
# Builds helm and kubeconform of exact versions into .cache/bin, with the Go toolchain, unless they are there or on the
# PATH already. The first time takes up to a quarter of an hour.
set -eu
bin=$PWD/.cache/bin

# is_version FILE VERSION: what Go wrote into a program that it built, or what a released one says of itself
is_version() {
  [ -x "$1" ] || return 1
  go version -m "$1" 2>/dev/null | awk '$1 == "mod" { print $3 }' | grep -qxF "$2" ||
    { "$1" version --short || "$1" -v; } 2>/dev/null | grep -qF "$2"
}

for module in \
  helm.sh/helm/v4/cmd/helm@v4.3.1 \
  github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0; do
  version=${module#*@}
  name=$(basename "${module%@*}")
  if is_version "$bin/$name" "$version" || { [ ! -x "$bin/$name" ] && is_version "$(command -v "$name" || true)" "$version"; }; then
    continue
  fi
  if ! command -v go >/dev/null 2>&1; then
    echo "$name $version is missing, and so is go, which builds it: install one of them (https://go.dev/dl)" >&2
    exit 1
  fi
  echo "building $name $version"
  mkdir -p "$bin"
  GOBIN=$bin GOFLAGS=-trimpath go install "$module"
done
