#!/usr/bin/env bash
# Looks for memory errors: builds nginx and the module with clang's AddressSanitizer and runs t/*.t
# and hostile configurations (tests/hostile_conf.rs), requests and failures at random (tests/*_fuzz.rs)
# with them. Any report, crash or [alert] fails.
#
#   tools/asan.sh build      only build; prints nginx=PATH and module=PATH
#   tools/asan.sh short      build, then the tests that reach most of the code in the least time
#   tools/asan.sh [FILE...]  build, then prove FILES (default: t/*.t and the configurations)
#
# Needs clang with its compiler-rt and NGINX_SOURCE_DIR, the sources of an nginx (tools/nginx.sh
# vendored makes and prints one); without it that script is called. All is built in target/asan,
# or ASAN_DIR.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
out=${ASAN_DIR:-$top/target/asan}
target=$(rustc -vV | sed -n 's/^host: //p')
name=ngx_http_combined_upstreams_module

# Leaks: nginx leaves what it has to the end of the process. ODR: nginx and the module define the
# tables of load_module under one name each.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_odr_violation=0:detect_stack_use_after_return=1
# Where the reports go: nginx closes or moves its stderr.
reports=$out/reports

die() { echo "asan.sh: $*" >&2; exit 1; }

logged() {
  "$@" >>"$out/log" 2>&1 && return
  tail -n 20 "$out/log" >&2
  die "$1 failed, see $out/log"
}

# NGX_DEBUG_PALLOC: each allocation from a pool is one of malloc, so that a step beside it is seen.
nginx_flags=(
  --with-cc=clang
  --with-cc-opt='-O1 -g -fsanitize=address -fno-omit-frame-pointer -DNGX_DEBUG_PALLOC=1'
  --with-ld-opt=-fsanitize=address
  --with-compat --with-debug --with-threads
  --with-http_ssl_module --with-http_v2_module
  --with-http_realip_module --with-http_auth_request_module --with-http_secure_link_module
  --with-http_sub_module --with-http_slice_module --with-http_addition_module
  --with-http_gunzip_module --with-http_gzip_static_module
  --with-http_dav_module --with-http_random_index_module --with-http_stub_status_module
)

build_nginx() {
  local id
  id=$(printf '%s\n' "$NGINX_SOURCE_DIR" "${nginx_flags[@]}" && cat "$NGINX_SOURCE_DIR/src/core/nginx.h")
  [ "$id" = "$(cat "$out/stamp" 2>/dev/null)" ] && return
  rm -rf "$out/stamp" "$out/src" "$out/log"
  echo "building nginx with AddressSanitizer in $out" >&2
  # A copy without what its own build made.
  mkdir -p "$out/src"
  tar -C "$NGINX_SOURCE_DIR" --exclude=./objs --exclude=./Makefile -cf - . | tar -C "$out/src" -xf -
  cd "$out/src"
  local configure=auto/configure
  [ -x "$configure" ] || configure=./configure
  logged "$configure" "${nginx_flags[@]}"
  logged env -u MAKEFLAGS -u MAKELEVEL make -j "$(nproc)" -f objs/Makefile binary
  cd "$top"
  printf '%s\n' "$id" >"$out/stamp"
}

# The flags are unstable ones, which RUSTC_BOOTSTRAP lets a stable compiler take. With --target they
# are not used for the build scripts.
build_module() {
  local triple=${target//-/_}
  env RUSTC_BOOTSTRAP=1 \
    RUSTFLAGS='-Zsanitizer=address -Zexternal-clangrt -Cforce-frame-pointers=yes' \
    "CC_$triple=clang" "CFLAGS_$triple=-fsanitize=address -g" \
    NGINX_SOURCE_DIR="$out/src" NGINX_BUILD_DIR="$out/src/objs" \
    CARGO_TARGET_DIR="$out" \
    cargo build --quiet --locked --target "$target" --manifest-path "$top/Cargo.toml"
}

build() {
  command -v clang >/dev/null || die "clang not found: apt-get install clang"
  echo 'int main(void) { return 0; }' | clang -fsanitize=address -xc -o /dev/null - 2>/dev/null ||
    die "clang has no AddressSanitizer: apt-get install the libclang-rt-*-dev of its version"
  if [ -z "${NGINX_SOURCE_DIR-}" ] || ! [ -f "$NGINX_SOURCE_DIR/src/core/nginx.c" ]; then
    local made
    made=$("$top/tools/nginx.sh" vendored)
    # Exported: cargo builds the configurations' test against that nginx.
    set -a
    eval "$made"
    set +a
  fi
  mkdir -p "$out"
  exec 9>"$out/lock"
  flock 9 # two of us must not build into one directory
  (build_nginx 9>&-)
  (build_module 9>&-)
  exec 9>&-
  nginx=$out/src/objs/nginx
  module=$out/$target/debug/lib$name.so
}

# run COUNT FILE...: proves the files, and has nginx read COUNT hostile configurations.
run() {
  local lib=() failed=0 hostile=$1
  shift
  perl -MTest::Nginx::Socket -e1 2>/dev/null || lib=(-It/lib)
  rm -rf "$reports"
  mkdir -p "$reports"
  cd "$top"
  # A report ends its process, so that most are seen by the tests too; that of a worker at its exit,
  # after the answer, only here.
  ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$reports/report \
    TEST_NGINX_BINARY=$nginx TEST_NGINX_LOAD_MODULES=$module \
    prove "${lib[@]}" "$@" || failed=1
  if [ "$hostile" != 0 ]; then
    ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$reports/report \
      TEST_NGINX_BINARY=$nginx TEST_NGINX_LOAD_MODULES=$module \
      HOSTILE_CONF_COUNT=${HOSTILE_CONF_COUNT:-$hostile} \
      cargo test --quiet --locked --test hostile_conf --test api_fuzz --test cache_fuzz || failed=1
  fi
  if [ -n "$(ls -A "$reports")" ]; then
    cat "$reports"/* >&2
    die "AddressSanitizer has found something, see $reports"
  fi
  [ "$failed" = 0 ] || die "tests failed"
  echo "ok - AddressSanitizer"
}

build
if [ "${1-}" = build ]; then
  printf 'nginx=%s\nmodule=%s\n' "$nginx" "$module"
  exit
fi
hostile=0
if [ "${1-}" = short ]; then
  hostile=100
  cd "$top"
  # A few files at a time, each with ports and a directory of its own: they wait more than they work.
  export TEST_NGINX_RANDOMIZE=1
  set -- -j 3 t/defects.t t/run_*.t
elif [ $# -eq 0 ]; then
  hostile=400
  # Without t/stand-in/*.t: those send signals to see whether a crash is noticed.
  cd "$top"
  set -- t/*.t
fi
run "$hostile" "$@"
