#!/usr/bin/env bash
# Looks at the state in each format, and changes it by upstrandctl (UPSTRANDCTL, or `make ctl`).
#
#   test.sh NGINX DIR PORTS      (tools/test-examples.sh runs it)
set -eu

nginx=${1:?usage: test.sh NGINX DIR PORTS} dir=${2:?} ports=${3:?}
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..

pid=''
finish() {
  if [ -n "$pid" ]; then
    kill -QUIT "$pid" 2>/dev/null || true
    wait "$pid" || true
  fi
}
trap finish EXIT
trap 'exit 1' INT TERM

result=0
check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$dir/said" 2>&1; then
    echo "ok - $what"
  else
    echo "not ok - $what"
    { echo "$what:"; cat "$dir/said"; } >&2
    result=1
  fi
}
get() { curl -sS --noproxy '*' --max-time 5 "$@"; }
says() { # TEXT COMMAND...
  local text=$1
  shift
  "$@" | tee /dev/stderr | grep -qF -- "$text"
}
exits() { # CODE COMMAND...
  local code=0
  "${@:2}" || code=$?
  [ "$code" = "$1" ]
}

site=http://127.0.0.1:${ports}0 status=http://127.0.0.1:${ports}3/upstrands
cp "$here/passwords" "$dir/passwords"
"$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'daemon off; pid nginx.pid;' &
pid=$!
waited=0
until get -o /dev/null "$site/" 2>/dev/null; do
  if [ $((waited += 1)) -gt 100 ] || ! kill -0 "$pid"; then exit 1; fi
  sleep 0.1
done

check 'the west takes over' says west get "$site/orders"
check 'JSON says why the east is out' says '"reason":"blacklisted after http_503"' get "$status"
check 'a browser gets the page' says '<title>' get -H 'Accept: text/html,*/*;q=0.8' "$status"
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
  get "$status" >"$dir/status.json"
  check 'JSON is what its schema says' /usr/bin/python3 "$top/tools/check-status.py" "$dir/status.json"
else
  echo 'ok - schema # skip no python3-jsonschema'
fi
if /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
  get "$status?format=prometheus" >"$dir/status.prom"
  check "Prometheus' parser takes the figures" /usr/bin/python3 "$top/tools/check-metrics.py" "$dir/status.prom"
  check 'the dashboard and the alerts ask for what there is' "$top/tools/test-monitoring.sh" "$dir/status.prom"
else
  echo 'ok - metrics # skip no python3-prometheus-client'
fi
if command -v chromium >/dev/null; then
  check 'the page shows it in a browser' "$top/tools/test-page.sh" "$status"
else
  echo 'ok - the page # skip no chromium'
fi

ctl=${UPSTRANDCTL:-$top/target/ctl/release/upstrandctl}
if [ ! -x "$ctl" ]; then
  echo 'ok - upstrandctl # skip not built: make ctl'
  exit "$result"
fi
socket() { "$ctl" --url "unix:$dir/logs/api.sock:/api/" "$@"; }
check 'upstrandctl status, over the socket' says 'blacklisted after http_503' socket status
check 'upstrandctl explain' says 'site: by turns, zone upstrands' socket explain site
check 'unblacklist' socket unblacklist site east
check 'the east is back' says east get "$site/"
check 'drain' says 'draining' socket drain site east
check 'nobody is sent there' says west get "$site/"
check 'the last one is not drained' exits 1 socket drain site west
check 'unless it is forced' socket drain site west --force
check 'status says by its exit code that nothing is left' exits 3 socket status
check 'a reload keeps that' "$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'pid nginx.pid;' -s reload
# The new workers answer when the old ones do no more.
sleep 1
check 'also after it' exits 3 socket status
check 'undrain' socket undrain site west
check 'blacklist' says 'blacklisted, 30s left' socket blacklist site east 30s
tcp() { "$ctl" --url "http://$1127.0.0.1:${ports}4/api/" "${@:2}"; }
check 'no password, no answer' exits 1 tcp '' status
check 'over TCP with a password' says 'drained by hand, blacklisted' tcp operator:secret@ status site
check 'undrain over TCP' tcp operator:secret@ undrain site east
check 'the log says what was done, and who did it' \
  grep -q 'notice.*upstream "east" in upstrand "site" is draining by request, client: unix:' "$dir/logs/error.log"
exit "$result"
