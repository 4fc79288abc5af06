#!/bin/sh
# Builds the site of the pages into .local/docs. The generator has a lock file of its own and is installed here only, so
# that nobody else waits for it.
set -eu

cd "$(dirname "$0")/../.."
site=.cache/docs
rm -rf "$site/pages"
mkdir -p "$site/pages"
cp -R deploy/docs/. "$site"
tar -cf - ./*.md docs test/README.md packages/client/README.md | tar -xf - -C "$site/pages"

cd "$site"
if [ ! -e installed ] || ! cmp -s package-lock.json installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json installed
fi
node_modules/.bin/vitepress build
