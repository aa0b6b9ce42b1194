#!/usr/bin/env bash
# The steps of the Dockerfile without a container: build.sh, and what the last stage does to nginx.conf.
# Prints TAP.
#
#   check.sh NGINX SOURCE_DIR      an nginx, and the source that it was built from
set -eu -o pipefail

nginx=$(realpath -e "${1:?usage: check.sh NGINX SOURCE_DIR}")
source=$(realpath -e "${2:?usage: check.sh NGINX SOURCE_DIR}")
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
name=ngx_http_combined_upstreams_module

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
result=0
check() { # WHAT TEST...
  local what=$1
  shift
  if "$@" >"$dir/out" 2>&1; then
    echo "ok - $what"
  else
    echo "not ok - $what"
    tail -n 30 "$dir/out" >&2
    result=1
  fi
}

# The source as it is downloaded: not configured, nothing built.
cp -R "$source" "$dir/source"
rm -rf "$dir/source/objs" "$dir/source/Makefile"
check 'build.sh builds the module' nice bash "$here/build.sh" "$dir/out.d" "$nginx" "$dir/source"
check 'the live fail-over with it' "$top/tools/demo.sh" "$nginx" "$dir/out.d/$name.so"

# The last RUN of the Dockerfile, on a prefix in place of /etc/nginx.
mkdir -p "$dir/prefix/modules" "$dir/prefix/logs"
cp "$dir/out.d/$name.so" "$dir/prefix/modules/" || true
echo 'events {} http { upstream u { server 127.0.0.1; } upstrand s { upstream u; } }' >"$dir/prefix/nginx.conf"
run=$(sed -n '$s/^RUN //p' "$here/Dockerfile")
run=${run//\/etc\/nginx\//$dir/prefix/}
run=${run/nginx -t/$nginx -t -p $dir/prefix -e stderr -c $dir/prefix/nginx.conf -g \"pid nginx.pid;\"}
check 'the last step of the Dockerfile: nginx.conf loads the module' bash -c "$run"
# shellcheck disable=SC2016
copied=$(sed -n 's/^COPY --from=build \/out\/\([^ ]*\) .*/\1/p' "$here/Dockerfile")
check 'the file that it copies is the one built' test "$copied" = "$(ls "$dir/out.d")"
exit "$result"
