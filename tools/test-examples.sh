#!/usr/bin/env bash
# Each configuration in examples/ is run as it is and must answer as the file `expect` beside it
# says; the configurations in README.md must be ones that nginx takes; the demo must do what it says.
#
#   tools/test-examples.sh NGINX MODULE [EXAMPLE...]
#
# An `expect` file is a list of requests, with empty lines between them:
#
#   # comment
#   GET /path -H 'Name: value'     method, URI or PORT/URI (the port as in nginx.conf), and what
#                                  curl is given besides
#   200                            the status
#   X-Visited: a -> b              headers that the answer has; "Name:" alone: it has none such
#   | body                         the body; none of these lines: it is empty
#
# "sleep SECONDS" in front of a request waits. An example that needs more than requests has a script
# `test.sh NGINX DIR PORTS` (see example_prefix and free_ports), which starts nginx by itself and
# prints a line for each thing that is checked.
set -eu

nginx=${1:?usage: test-examples.sh NGINX MODULE [EXAMPLE...]}
module=${2:?usage: test-examples.sh NGINX MODULE [EXAMPLE...]}
shift 2
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/example.sh
. "$top/tools/example.sh"

root=$(mktemp -d)
pid=
stop() {
  [ -n "$pid" ] || return 0
  kill -QUIT "$pid" 2>/dev/null || true
  wait "$pid" || true
  pid=
}
trap 'stop; rm -rf "$root"' EXIT
trap 'exit 1' INT TERM

result=0
failed() { # NAME [LOG]
  echo "not ok - $1"
  result=1
  if [ -n "${2-}" ]; then tail -n 20 "$2" >&2; fi
}

# start DIR PORTS: starts nginx there.
start() {
  local waited=0
  "$nginx" -p "$1/" -e logs/error.log -c "$1/nginx.conf" -g 'daemon off; pid nginx.pid;' &
  pid=$!
  while free_port "${2}0"; do
    if ! kill -0 "$pid" 2>/dev/null || [ $((waited += 1)) -gt 100 ]; then return 1; fi
    sleep 0.1
  done
}

# ask DIR PORTS REQUEST: sends it. The answer is in DIR/head and DIR/body.
ask() {
  local dir=$1 ports=$2 method uri port
  eval "set -- $3"
  method=$1 uri=$2
  shift 2
  port=${uri%%/*}
  port=${port:-18080}
  if [ "$method" = HEAD ]; then set -- -I "$@"; else set -- -X "$method" "$@"; fi
  curl -sS --noproxy '*' --max-time 20 -D "$dir/head" -o "$dir/body" "$@" \
    "http://127.0.0.1:$ports${port#1808}/${uri#*/}" || true
}

# compare DIR STATUS HEADERS BODY: prints what differs.
compare() {
  local dir=$1 line name value status body
  status=$(awk 'NR == 1 { print $2 }' "$dir/head")
  [ "$status" = "$2" ] || echo "status: $status, expected: $2"
  while read -r line; do
    [ -n "$line" ] || continue
    name=${line%%:*}
    value=$(tr -d '\r' <"$dir/head" | sed -n "s/^$name: *//Ip" | sed 's/[[:space:]]*$//')
    [ "$value" = "$(sed 's/^[^:]*: *//' <<<"$line")" ] || echo "$name: $value, expected: $line"
  done <<<"$3"
  body=$(cat "$dir/body" 2>/dev/null || true)
  [ "$body" = "$4" ] || printf 'body:\n%s\nexpected:\n%s\n' "$body" "$4"
}

# run_expect NAME DIR PORTS FILE
run_expect() {
  local name=$1 dir=$2 ports=$3 line request='' status='' headers='' body='' differs
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      '#'*) ;;
      '') finish_request ;;
      'sleep '*) sleep "${line#sleep }" ;;
      '| '*) body+="${body:+$'\n'}${line#| }" ;;
      *)
        if [ -z "$request" ]; then request=$line
        elif [ -z "$status" ]; then status=$line
        else headers+="$line"$'\n'; fi
        ;;
    esac
  done < <(cat "$4"; echo)
}

finish_request() {
  [ -n "$request" ] || return 0
  rm -f "$dir/head" "$dir/body"
  ask "$dir" "$ports" "$request"
  [ -f "$dir/head" ] || : >"$dir/head"
  differs=$(compare "$dir" "$status" "$headers" "$body")
  if [ -z "$differs" ]; then
    echo "ok - $name: $request"
  else
    failed "$name: $request"
    printf '%s\n' "$differs" >&2
  fi
  request='' status='' headers='' body=''
}

# at_least VERSION: nginx is that or newer.
at_least() {
  local version
  version=$("$nginx" -v 2>&1 | sed 's|.*/\([0-9.]*\).*|\1|')
  [ "$(printf '%s\n' "$1" "$version" | sort -V | head -n 1)" = "$1" ]
}

run() { # NAME
  local name=$1 dir=$root/$1 example=$top/examples/$1 ports
  if grep -q ' resolve;' "$example/nginx.conf" && ! at_least 1.27.3; then
    echo "ok - $name # skip nginx before 1.27.3 resolves no servers at run time"
    return
  fi
  mkdir "$dir"
  example_prefix "$dir" "$example/nginx.conf" "$module"
  # What -t says is for whoever reads it when it fails.
  if ! "$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'pid nginx.pid;' -t 2>"$dir/log"; then
    failed "$name: nginx -t" "$dir/log"
    return
  fi
  if grep -q '\[warn\]' "$dir/log"; then failed "$name: nginx -t warns" "$dir/log"; fi
  echo "ok - $name: nginx -t"
  if [ -f "$example/expect" ] || [ -f "$example/test.sh" ]; then
    ports=$(free_ports)
    sed -i "s/:1808\([0-9]\)/:$ports\1/g" "$dir/nginx.conf"
    if [ -f "$example/test.sh" ]; then
      timeout --foreground 90 "$example/test.sh" "$nginx" "$dir" "$ports" >"$dir/out" 2>"$dir/log" ||
        failed "$name: test.sh" "$dir/log"
      sed "s/^\(not \)\?ok - /&$name: /" "$dir/out"
    elif start "$dir" "$ports"; then
      run_expect "$name" "$dir" "$ports" "$example/expect"
    else
      failed "$name: nginx starts" "$dir/logs/error.log"
    fi
    stop
    if grep -E '\[(alert|emerg|crit)\]' "$dir/logs/error.log" >"$dir/log"; then
      failed "$name: nothing bad in the error log" "$dir/log"
    fi
  fi
  [ -f "$example/README.md" ] || failed "$name: README.md"
}

chmod 755 "$root"
if [ $# -gt 0 ]; then
  for name in "$@"; do run "$name"; done
  exit "$result"
fi

# readme: README.md's blocks of ```nginx, whole files (those with load_module) or parts of http{}.
readme() {
  local dir=$root/README ports block name
  mkdir "$dir"
  ports=$(free_ports)
  awk -v dir="$dir" '
    /^```nginx$/ { block = sprintf("%s/block%02d", dir, ++n); next }
    /^```$/      { block = ""; next }
    block        { print > block }
  ' "$top/README.md"
  for block in "$dir"/block*; do
    if ! grep -q '^load_module' "$block"; then
      sed -i "s/^server {/server { listen 80;/" "$block"
      {
        echo 'load_module modules/ngx_http_combined_upstreams_module.so;'
        echo 'events {}'
        echo 'http {'
        cat "$block"
        echo '}'
      } >"$block.conf"
    else
      cp "$block" "$block.conf"
    fi
    sed -i "s/listen 80;/listen 127.0.0.1:${ports}0;/" "$block.conf"
    example_prefix "$dir" "$block.conf" "$module"
    name="README.md: configuration ${block##*block}"
    if "$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'pid nginx.pid;' -t 2>"$dir/log" &&
      ! grep -q '\[warn\]' "$dir/log"; then
      echo "ok - $name"
    else
      failed "$name" "$dir/log"
    fi
  done
}

for config in "$top"/examples/*/nginx.conf; do
  name=${config%/nginx.conf}
  run "${name##*/}"
done
readme
"$top/tools/demo.sh" "$nginx" "$module" || result=1
exit "$result"
