#!/usr/bin/env bash
# The builds by nginx's own configure (files `config` and `config.make`), dynamic and static: each
# must run the demo as the build by cargo does. And the build by cargo must refuse an nginx that is
# too old. Needs the NGINX_* variables of tools/nginx.sh.
#
#   tools/test-build.sh DIR      DIR keeps what was built, for the next time
set -eu

dir=${1:?usage: test-build.sh DIR}
top=$(cd "$(dirname "$0")/.." && pwd)
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
  mkdir -p "$dir"
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
# check KIND OPTION TARGET NGINX [MODULE]
check() {
  local what="$2: nginx is built and the demo runs"
  if build "$1" "$2" "$3" && "$top/tools/demo.sh" "${@:4}" >"$dir/demo.log" 2>&1; then
    echo "ok - $what"
  else
    echo "not ok - $what"
    tail -n 30 "$dir/$1.log" "$dir/demo.log" >&2 || true
    result=1
  fi
}

check dynamic --add-dynamic-module modules "$NGINX_BINARY" "$dir/dynamic/objs/$name.so"
# Debian's nginx-dev has the headers only.
if [ -f "$NGINX_SOURCE_DIR/src/core/nginx.c" ]; then
  check static --add-module binary "$dir/static/objs/nginx"
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
