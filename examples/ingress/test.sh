#!/usr/bin/env bash
# Renders and reloads some times while clients ask; no request may be lost.
#
#   test.sh NGINX DIR PORTS      (tools/test-examples.sh runs it)
set -eu

nginx=${1:?usage: test.sh NGINX DIR PORTS} dir=${2:?} ports=${3:?}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/example.sh
. "$here/../../tools/example.sh"

pid='' clients=()
finish() {
  touch "$dir/stop"
  if [ ${#clients[@]} -gt 0 ]; then wait "${clients[@]}" || true; fi
  if [ -n "$pid" ]; then
    kill -QUIT "$pid" 2>/dev/null || true
    wait "$pid" || true
  fi
}
trap finish EXIT
trap 'exit 1' INT TERM

result=0
check() { # WHAT TEST...
  local what=$1
  shift
  if "$@"; then echo "ok - $what"; else echo "not ok - $what"; result=1; fi
}

command=("$nginx" -p "$dir/" -e logs/render.log -c "$dir/nginx.conf" -g 'pid nginx.pid;')
sed "s/:1808\([0-9]\)/:$ports\1/g" "$here/service.template" >"$dir/template"
render() { # LINE...: the services from now on; the ports are the last digits of those of the example
  printf '%s\n' "$@" | sed "s/:\([0-9]\)\>/127.0.0.1:$ports\1/g" >"$dir/services"
  "$here/render.sh" "$dir/services" "$dir/template" "$dir/conf.d" "${command[@]}"
}
says() { [ "$(render "${@:2}")" = "$1" ]; }
get() { # HOST
  curl -sS --noproxy '*' --max-time 10 -H "Host: $1" -o - -w '%{http_code}' "http://127.0.0.1:${ports}0/" |
    tr '\n' ' '
}
# answers HOST TEXT: that is what comes, some time after a reload. A mark may stand for three seconds.
answers() {
  local waited=0
  until [ "$(get "$1")" = "$2" ]; do
    [ $((waited += 1)) -lt 200 ] || { echo "$1: $(get "$1"), expected: $2" >&2; return 1; }
    sleep 0.05
  done
}

"$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'daemon off; pid nginx.pid;' &
pid=$!
waited=0
while free_port "${ports}0" || ! [ -s "$dir/nginx.pid" ]; do
  if ! kill -0 "$pid" 2>/dev/null || [ $((waited += 1)) -gt 100 ]; then
    echo "nginx does not start" >&2
    exit 1
  fi
  sleep 0.1
done

mail='mail mail.example :2'
check 'no service yet' answers shop.example 'no such service 404'
check 'the first render reloads' says reloaded 'shop shop.example :1 :3' "$mail"
check 'shop is there' answers shop.example 'first 200'
check 'mail is there' answers mail.example 'second 200'
check 'the same list again changes nothing' says unchanged 'shop shop.example :1 :3' "$mail"

for client in 1 2; do
  while [ ! -e "$dir/stop" ]; do
    for host in shop mail; do echo "$host $(get $host.example)"; done
  done >"$dir/client$client" 2>&1 &
  clients+=($!)
done

check 'other servers' says reloaded 'shop shop.example :2,:1 :3' "$mail"
check 'the new server is asked' answers shop.example 'second 200'
check 'a server that is out of order' says reloaded 'shop shop.example :4 :3' "$mail"
check 'the one elsewhere takes over' answers shop.example 'elsewhere 200'
kept=$(cat "$dir"/conf.d/*)
check 'what nginx refuses is refused' bash -c '! "$@" 2>/dev/null' - "$here/render.sh" \
  <(echo 'shop shop.example no:such:port') "$dir/template" "$dir/conf.d" "${command[@]}"
check 'and the old files stay' test "$kept" = "$(cat "$dir"/conf.d/*)"
for turn in 1 2 3 4; do
  check "there, turn $turn" says reloaded 'shop shop.example :1 :3' "$mail"
  check "its answer, turn $turn" answers shop.example 'first 200'
  check "and back, turn $turn" says reloaded 'shop shop.example :2' "$mail" 'docs docs.example :1'
  check "its answer, turn $turn" answers docs.example 'first 200'
done

touch "$dir/stop"
wait "${clients[@]}"
clients=()
lost=$(cat "$dir"/client* | grep -cvE '^(shop (first|second|elsewhere)|mail second) 200$' || true)
asked=$(cat "$dir"/client* | wc -l)
check "$asked requests meanwhile, $lost lost" test "$lost" = 0 -a "$asked" -gt 20
if [ "$lost" != 0 ]; then cat "$dir"/client* | grep -v ' 200$' | head >&2; fi
exit "$result"
