#!/bin/sh
# usage: require.sh COMMAND|linux-x64...
# Says what to install for each command that is missing or too old. Fails when there is one. linux-x64: this must be the
# platform.
missing=0

lacks() {
  echo "$1" >&2
  missing=1
}

for command in "$@"; do
  if [ "$command" = linux-x64 ]; then
    [ "$(uname -sm)" = "Linux x86_64" ] && continue
    echo "the local servers need Linux on x64 and this is $(uname -sm): use containers, 'docker compose -f deploy/compose.yaml --profile system up --build --detach --wait' (docs/quick-start.md)" >&2
    exit 1
  fi
  if ! command -v "$command" >/dev/null 2>&1; then
    case $command in
    node) lacks "node is missing: install Node.js 20 or newer (https://nodejs.org); Node 24 itself comes with 'make setup'" ;;
    npm) lacks "npm is missing: it comes with Node.js; on Debian and Ubuntu: apt-get install npm" ;;
    java) lacks "java is missing: Kafka needs Java 17 or newer; on Debian and Ubuntu: apt-get install openjdk-17-jre-headless" ;;
    mvn) lacks "mvn is missing: Maven fetches Kafka and Redis; on Debian and Ubuntu: apt-get install maven" ;;
    openssl) lacks "openssl is missing: the tests make certificates with it; on Debian and Ubuntu: apt-get install openssl" ;;
    python3) lacks "python3 is missing: the tests need Python 3.11 or newer; on Debian and Ubuntu: apt-get install python3 python3-venv" ;;
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
  python3)
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
      lacks "python3 is $(python3 --version 2>&1): the tests need Python 3.11 or newer"
    python3 -c 'import ensurepip, venv' 2>/dev/null ||
      lacks "python3 has no venv: on Debian and Ubuntu: apt-get install python3-venv"
    ;;
  esac
done

exit $missing
