#!/usr/bin/env bash
# The live fail-over: runs examples/failover on loopback, asks, and shows which upstreams were
# visited for each request and what came back. Exits with 0 only if all was as it should be.
#
#   tools/demo.sh NGINX [MODULE]      (no MODULE: it is linked into NGINX)
set -eu

nginx=${1:?usage: demo.sh NGINX [MODULE]}
module=${2-}
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/example.sh
. "$top/tools/example.sh"

dir=$(mktemp -d)
pid=
finish() {
  if [ -n "$pid" ]; then
    kill -QUIT "$pid" 2>/dev/null || true
    wait "$pid" || true
  fi
  rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

# Other ports if somebody has the example's.
free() { ! (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
ports=1808
until free "${ports}0" && free "${ports}1" && free "${ports}2" && free "${ports}3" && free "${ports}4"; do
  ports=$((ports + 1))
  [ "$ports" -lt 1900 ] || { echo "demo: no free ports on 127.0.0.1" >&2; exit 1; }
done

example_prefix "$dir" "$top/examples/failover/nginx.conf" "$module"
sed -i "s/127\.0\.0\.1:1808/127.0.0.1:$ports/" "$dir/nginx.conf"

"$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'daemon off; pid nginx.pid;' &
pid=$!
waited=0
while free "${ports}0"; do
  if ! kill -0 "$pid" 2>/dev/null || [ $((waited += 1)) -gt 100 ]; then
    echo "demo: nginx does not start" >&2
    cat "$dir/logs/error.log" >&2
    exit 1
  fi
  sleep 0.1
done

row() { printf '%-17s %-31s %-39s %-26s %s\n' "$@"; }

# ask REQUEST VISITED STATUSES ANSWER [CURL'S ARGUMENT...]: sends REQUEST, compares, prints a row.
passed=0 failed=0
ask() {
  local request=$1 visited=$2 statuses=$3 answer=$4 seen_visited seen_statuses seen_answer
  shift 4
  curl -sS --noproxy '*' --max-time 20 -X "${request% *}" "$@" -D "$dir/head" -o "$dir/body" \
    "http://127.0.0.1:${ports}0${request#* }" || true
  seen_visited=$(header x-visited)
  seen_statuses=$(header x-statuses)
  seen_answer="$(awk 'NR == 1 { print $2 }' "$dir/head") $(cat "$dir/body")"
  if [ "$seen_visited|$seen_statuses|$seen_answer" = "$visited|$statuses|$answer" ]; then
    passed=$((passed + 1))
    row "$request" "$seen_visited" "$seen_statuses" "$seen_answer" ok
  else
    failed=$((failed + 1))
    row "$request" "$seen_visited" "$seen_statuses" "$seen_answer" WRONG
    row '  expected:' "$visited" "$statuses" "$answer" ''
  fi
  rm -f "$dir/head" "$dir/body"
}
header() { sed -n "s/^$1: *//Ip" "$dir/head" | sed 's/[[:space:]]*$//'; }

echo "$("$nginx" -v 2>&1), examples/failover/nginx.conf on port ${ports}0"
row REQUEST VISITED 'STATUS OF EACH' ANSWER ''

echo '# nobody listens at the first upstream'
ask 'GET /refused' 'dead -> live' '(dead) 502 (live) 200' '200 first'
ask 'POST /refused' 'dead -> live' '(dead) 502 (live) 200' '200 first' -d some=data

echo '# the first upstream answers 503; a POST that it has got is not sent to another one'
ask 'GET /unavailable' 'broken -> live' '(broken) 503 (live) 200' '200 first'
ask 'POST /unavailable' 'broken' '(broken) 503' '503 broken' -d some=data

echo '# all normal upstreams fail: the backup one'
ask 'GET /backup' 'dead -> broken -> standby' '(dead) 502 (broken) 503 (standby) 200' '200 second'

echo '# all fail: another page instead of the last answer'
ask 'GET /hopeless' 'dead -> broken -> <intercepted>' \
  '(dead) 502 (broken) 503 (<intercepted>)' '200 sorry, come back later'

echo '# a failed upstream is left out for a while'
ask 'GET /remember' 'broken -> live' '(broken) 503 (live) 200' '200 first'
ask 'GET /remember' 'live' '(live) 200' '200 first'

echo '# no cookie: the servers take turns; the cookie of an answer: the same server again'
ask 'GET /sticky' 'app_1' '(app_1) 200' '200 first'
ask 'GET /sticky' 'app_2' '(app_2) 200' '200 second' -c "$dir/cookies"
ask 'GET /sticky' 'app_2' '(app_2) 200' '200 second' -b "$dir/cookies"
ask 'GET /sticky' 'app_2' '(app_2) 200' '200 second' -b "$dir/cookies"

echo '# the cookie names a server that is gone: another one takes over'
ask 'GET /sticky' 'app_3 -> app_1' '(app_3) 502 (app_1) 200' '200 first' -b route=3

echo "$passed passed, $failed failed"
if [ "$failed" != 0 ]; then
  echo "--- end of nginx's error log"
  tail -n 20 "$dir/logs/error.log"
  exit 1
fi
