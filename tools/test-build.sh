#!/usr/bin/env bash
# The builds by nginx's own configure (files `config` and `config.make`), dynamic and static: each
# must run the demo and pass the tests as the build by cargo does. And the build by cargo must refuse
# an nginx that is too old. Needs the NGINX_* variables of tools/nginx.sh.
#
#   tools/test-build.sh DIR           DIR keeps what was built, for the next time. Of the tests
#                                     t/run_*.t are run, on the static build
#   tools/test-build.sh --full DIR    all of t/ and tests/, on both
set -eu

full=
if [ "${1-}" = --full ]; then
  full=yes
  shift
fi
dir=${1:?usage: test-build.sh [--full] DIR}
top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$dir"
dir=$(realpath "$dir")
cd "$top"
name=ngx_http_combined_upstreams_module

# The configuration of the nginx at hand, so that it loads the module.
if [ -f "$NGINX_SOURCE_DIR/conf_flags" ]; then
  # shellcheck disable=SC1091
  . "$NGINX_SOURCE_DIR/conf_flags"
  flags=("${NGX_CONF_FLAGS[@]}")
else
  # nginx -V quotes them for the shell.
  eval "flags=($("$NGINX_BINARY" -V 2>&1 | sed -n 's/^configure arguments: //p'))"
fi

# build KIND OPTION TARGET: configures a copy of the source in DIR/KIND with OPTION, makes TARGET.
build() {
  local option=$2 target=$3 copy=$dir/$1 log=$dir/$1.log
  if [ ! "$copy/objs/Makefile" -nt "$NGINX_BUILD_DIR/Makefile" ] ||
    [ ! "$copy/objs/Makefile" -nt "$top/config" ] || [ ! "$copy/objs/Makefile" -nt "$top/config.make" ]; then
    rm -rf "$copy"
    cp -R "$NGINX_SOURCE_DIR" "$copy"
    rm -rf "$copy/objs"
    local configure=auto/configure
    [ -f "$copy/configure" ] && configure=./configure
    (cd "$copy" && "$configure" "${flags[@]}" --builddir=objs "$option=$top") >"$log" 2>&1 || return
  fi
  (cd "$copy" && env -u MAKEFLAGS -u MAKELEVEL make -j "$(nproc)" -f objs/Makefile "$target") >>"$log" 2>&1
}

result=0
# check WHAT LOG COMMAND...
check() {
  if "${@:3}" >"$2" 2>&1; then
    echo "ok - $1"
  else
    echo "not ok - $1"
    # What failed is said again at the end.
    tail -n 40 "$2" >&2
    result=1
    return 1
  fi
}

# with NGINX MODULE COMMAND...: what both kinds of tests take their nginx from. No module: it is linked in.
with() {
  TEST_NGINX_BINARY=$1 TEST_NGINX_LOAD_MODULES=$2 "${@:3}"
}

lib=()
perl -MTest::Nginx::Socket -e1 2>/dev/null || lib=(-It/lib)

# test_build KIND OPTION TARGET NGINX MODULE
test_build() {
  check "$2: nginx is built" "$dir/$1.out" build "$1" "$2" "$3" || {
    tail -n 30 "$dir/$1.log" >&2
    return
  }
  check "$2: the demo runs" "$dir/$1-demo.log" "$top/tools/demo.sh" "$4" "$5" || true
  local files=()
  if [ -n "$full" ]; then
    files=(t/*.t)
  elif [ "$1" = static ]; then
    files=(t/run_*.t)
  fi
  # They wait more than they work: several at a time, each with ports and a directory of its own.
  [ "${#files[@]}" = 0 ] ||
    check "$2: ${#files[@]} files of t/ pass" "$dir/$1-prove.log" \
      with "$4" "$5" env TEST_NGINX_RANDOMIZE=1 prove "${lib[@]}" -j 3 "${files[@]}" || true
  [ -z "$full" ] ||
    check "$2: tests/ pass" "$dir/$1-cargo.log" \
      with "$4" "$5" cargo test --locked --no-fail-fast --test '*' || true
}

test_build dynamic --add-dynamic-module modules "$NGINX_BINARY" "$dir/dynamic/objs/$name.so"
# Debian's nginx-dev has the headers only.
if [ -f "$NGINX_SOURCE_DIR/src/core/nginx.c" ]; then
  test_build static --add-module binary "$dir/static/objs/nginx" ''
else
  echo "ok - --add-module # skip no sources of nginx"
fi

# The headers at hand, but they say that they are of 1.21.6. Cargo has a directory of its own for
# them, so that no other build starts anew.
old=$dir/old
rm -rf "$old"
mkdir -p "$old"
cp -RL "$NGINX_SOURCE_DIR/src" "$old/src"
ln -s "$(realpath "$NGINX_BUILD_DIR")" "$old/$(basename "$NGINX_BUILD_DIR")"
chmod -R u+w "$old/src"
sed -i -e 's/^\(#define nginx_version  *\).*/\11021006/' \
  -e 's/^\(#define NGINX_VERSION  *\).*/\1"1.21.6"/' "$old/src/core/nginx.h"
what="nginx 1.21.6 is refused in one line"
if env -u MAKEFLAGS -u MAKELEVEL NGINX_SOURCE_DIR="$old" CARGO_TARGET_DIR="$dir/old-target" \
  cargo check --locked --lib --manifest-path "$top/Cargo.toml" >"$dir/old.log" 2>&1; then
  echo "not ok - $what: it was built"
  result=1
elif [ "$(grep -c '^warning: .*1\.21\.6 is too old: this module needs nginx 1\.22\.0 or later$' "$dir/old.log")" = 1 ]; then
  echo "ok - $what"
else
  echo "not ok - $what"
  tail -n 30 "$dir/old.log" >&2
  result=1
fi
exit "$result"
