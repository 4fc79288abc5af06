#!/bin/sh
# usage: require.sh COMMAND...
# Says what to install for every command that is missing or too old, and fails if there is one.
missing=0

lacks() {
  echo "$1" >&2
  missing=1
}

for command in "$@"; do
  if ! command -v "$command" >/dev/null 2>&1; then
    case $command in
    node) lacks "node is missing: install Node.js 20 or newer (https://nodejs.org); Node 24 itself comes with 'make setup'" ;;
    npm) lacks "npm is missing: it comes with Node.js; on Debian and Ubuntu: apt-get install npm" ;;
    java) lacks "java is missing: Kafka needs Java 17 or newer; on Debian and Ubuntu: apt-get install openjdk-17-jre-headless" ;;
    mvn) lacks "mvn is missing: Maven fetches Kafka and Redis; on Debian and Ubuntu: apt-get install maven" ;;
    *) lacks "$command is missing" ;;
    esac
    continue
  fi
  case $command in
  node)
    version=$(node --version | sed 's/^v//; s/\..*//')
    [ "$version" -ge 20 ] || lacks "node is version $version: install Node.js 20 or newer (https://nodejs.org)"
    ;;
  java)
    version=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${version:-0}" -ge 17 ] || lacks "java is version ${version:-unknown}: Kafka needs Java 17 or newer"
    ;;
  esac
done

exit $missing
