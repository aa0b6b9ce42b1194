#!/usr/bin/env bash
# Changes the addresses of the service while nginx runs.
#
#   test.sh NGINX DIR PORTS      (tools/test-examples.sh runs it)
set -eu

nginx=${1:?usage: test.sh NGINX DIR PORTS} dir=${2:?} ports=${3:?}
here=$(cd "$(dirname "$0")" && pwd)

dns='' pid=''
finish() {
  if [ -n "$pid" ]; then
    kill -QUIT "$pid" 2>/dev/null || true
    wait "$pid" || true
  fi
  if [ -n "$dns" ]; then
    kill "$dns" 2>/dev/null || true
    wait "$dns" || true
  fi
}
trap finish EXIT
trap 'exit 1' INT TERM

result=0
get() { curl -sS --noproxy '*' --max-time 5 -w '%{http_code}' "http://127.0.0.1:${ports}0/" | tr '\n' ' '; }
answers() { # WHAT TEXT: that is what comes, some time after a change
  local waited=0
  until [ "$(get 2>/dev/null)" = "$2" ]; do
    if [ $((waited += 1)) -gt 150 ] || ! kill -0 "$pid" "$dns" 2>/dev/null; then
      echo "not ok - $1"
      echo "$1: $(get), expected: $2" >&2
      result=1
      return
    fi
    sleep 0.1
  done
  echo "ok - $1"
}
pods() { # ADDRESS...
  printf '%s\n' "$@" >"$dir/pods.new"
  mv "$dir/pods.new" "$dir/pods"
}

pods 127.0.0.1
perl "$here/dns.pl" "${ports}9" "$dir/pods" &
dns=$!
"$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'daemon off; pid nginx.pid;' &
pid=$!

answers 'the pod that DNS names' 'old pod 200'
pods ''
answers 'it is gone, the other cluster answers' 'other cluster 200'
pods 127.0.0.2
answers 'it was rebuilt, and is found at its new address' 'new pod 200'
exit "$result"
