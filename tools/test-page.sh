#!/usr/bin/env bash
# The page of upstrand_status in headless Chromium.
#
#   tools/test-page.sh          src/status/page.html on a server made up by the test: all states, 500
#                               upstreams, failures
#   tools/test-page.sh URL      the page of a server that runs: that it shows what its JSON says
#
# SHOTS=DIRECTORY keeps screenshots there.
set -eu
cd "$(dirname "$0")/.."

skip() { echo "ok - page # skip no $1: apt-get install $2"; exit 0; }
command -v python3 >/dev/null || skip python3 python3
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
  skip Chromium chromium
[ -z "${SHOTS-}" ] || mkdir -p "$SHOTS"
exec python3 tests/page/run.py "$@"
