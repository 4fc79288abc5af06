#!/bin/sh
# Installs the npm packages when the lock file is newer than they are, and checks that Node 24 is among them.
# Runs with the PATH of the machine, since npm cannot replace the node that it runs on.
set -eu

installed=node_modules/.package-lock.json
node=node_modules/.bin/node

is_node_24() {
  case $("$node" --version 2>/dev/null) in v24.*) ;; *) return 1 ;; esac
}

if [ ! -e "$installed" ] || [ -n "$(find package-lock.json -newer "$installed")" ]; then
  echo "installing npm packages"
  npm ci --no-audit --no-fund --loglevel=error
  touch "$installed"
fi

if ! is_node_24; then
  # npm may be configured not to run install scripts; the package node brings its binary with one.
  npm rebuild node --ignore-scripts=false --loglevel=error || true
  if ! is_node_24; then
    echo "$node is not Node 24: its package could not fetch the binary for this machine." >&2
    echo "See 'npm rebuild node --ignore-scripts=false --foreground-scripts', or remove node_modules and run 'make setup' again." >&2
    exit 1
  fi
fi
