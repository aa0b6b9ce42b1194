#!/usr/bin/env bash
# Each configuration in examples/ must be one that nginx takes, and the demo must do what it says.
#
#   tools/test-examples.sh NGINX MODULE
set -eu

nginx=${1:?usage: test-examples.sh NGINX MODULE}
module=${2:?usage: test-examples.sh NGINX MODULE}
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/example.sh
. "$top/tools/example.sh"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

result=0
for config in "$top"/examples/*/nginx.conf; do
  example_prefix "$dir" "$config" "$module"
  name=${config#"$top/"}
  if "$nginx" -p "$dir/" -e logs/error.log -c "$dir/nginx.conf" -g 'pid nginx.pid;' -t; then
    echo "ok - $name"
  else
    echo "not ok - $name"
    result=1
  fi
done

"$top/tools/demo.sh" "$nginx" "$module" || result=1
exit "$result"
