#!/usr/bin/env bash
# Runs bench/bench.py on an nginx without debug, which is built once, in target/bench.
#
#   tools/bench.sh SOURCE_DIR MODULE [OPTION...]
#
# SOURCE_DIR is the source that the module was built from (NGINX_SOURCE_DIR of tools/nginx.sh); the
# options are bench.py's.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
source=$1 module=$2
shift 2
out=$top/target/bench

flags=(--with-compat --with-cc-opt=-O2 --with-http_stub_status_module)

missing=()
for tool in python3 valgrind vgdb strace; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "bench.sh: not installed: ${missing[*]} (vgdb comes with valgrind)" >&2
  exit 1
fi

logged() {
  "$@" >>"$out/log" 2>&1 && return
  tail -n 20 "$out/log" >&2
  echo "bench.sh: $1 failed, see $out/log" >&2
  exit 1
}

build() {
  echo "building nginx without debug in $out" >&2
  rm -rf "$out/stamp" "$out/src" "$out/log"
  cp -R "$source" "$out/src"
  cd "$out/src"
  rm -rf objs Makefile
  logged auto/configure "${flags[@]}"
  logged env -u MAKEFLAGS -u MAKELEVEL nice make -j "$(nproc)" -f objs/Makefile binary
}

id=$(grep '#define NGINX_VERSION ' "$source/src/core/nginx.h" && printf '%s\n' "${flags[@]}")
mkdir -p "$out"
exec 9>"$out/lock"
flock 9 # one build, and one measurement, at a time
if [ "$id" != "$(cat "$out/stamp" 2>/dev/null)" ]; then
  (build)
  printf '%s\n' "$id" >"$out/stamp"
fi

exec env -u NGINX nice "$top/bench/bench.py" --nginx "$out/src/objs/nginx" --module "$module" "$@"
