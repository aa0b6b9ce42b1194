#!/usr/bin/env bash
# Makes an nginx to build and test against and prints where it is, as shell assignments:
#   NGINX_SOURCE_DIR    source tree (headers)
#   NGINX_BUILD_DIR     result of its configure (objs/)
#   NGINX_BINARY        the nginx to run
#   NGINX_MODULES_PATH  where that one looks for modules
#
#   tools/nginx.sh vendored   nginx of the crate nginx-src (the version in Cargo.lock), built once
#   tools/nginx.sh debian     Debian's own nginx; its headers (nginx-dev) configured as the binary was
#   tools/nginx.sh own        the one that NGINX_BUILD_DIR, NGINX_SOURCE_DIR (one of them is enough)
#                             and NGINX_BINARY (default: the one in NGINX_BUILD_DIR) name
#
# All else goes to stderr. A stamp makes every run but the first one a no-op.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
kind=${1-}
out=$top/target/nginx/$kind

die() { echo "nginx.sh: $*" >&2; exit 1; }

logged() {
  "$@" >>"$out/log" 2>&1 && return
  tail -n 20 "$out/log" >&2
  die "$1 failed, see $out/log"
}

# What the tests and the demo use. --with-compat: modules built here also load into other nginx
# binaries of the same version; --with-debug: error_log debug shows what a walk does.
vendored_flags=(
  --with-compat --with-debug --with-threads --with-cc-opt=-O2
  --with-http_ssl_module --with-http_v2_module --with-http_v3_module
  --with-http_realip_module --with-http_auth_request_module --with-http_secure_link_module
  --with-http_sub_module --with-http_slice_module --with-http_addition_module
  --with-http_gunzip_module --with-http_gzip_static_module
  --with-http_dav_module --with-http_random_index_module --with-http_stub_status_module
  --with-stream --with-stream_ssl_module
)

# The stamp's text: whatever changes it makes nginx to be built anew.
vendored_id() {
  [ -f "$top/Cargo.lock" ] || die "no Cargo.lock"
  awk '/^name = "nginx-src"$/ { getline; print; found = 1 } END { exit !found }' "$top/Cargo.lock" ||
    die "no nginx-src in Cargo.lock"
  printf '%s\n' "${vendored_flags[@]}"
}

vendored_build() {
  local manifest
  # cargo knows where the crate is, and fetches it if need be.
  manifest=$(cargo metadata --format-version 1 --locked --features vendored \
    --manifest-path "$top/Cargo.toml" |
    grep -o '"manifest_path":"[^"]*/nginx-src[^/"]*/Cargo.toml"' | cut -d'"' -f4) ||
    die "cargo metadata does not list nginx-src"
  echo "building nginx from $(dirname "$manifest") in $out" >&2
  # A copy, since configure writes into the source tree and that one is cargo's.
  cp -R "$(dirname "$manifest")/nginx" "$out/src"
  cd "$out/src"
  logged auto/configure "${vendored_flags[@]}"
  # Not as a part of the make that may have called this script: that one's flags are not nginx's.
  logged env -u MAKEFLAGS -u MAKELEVEL make -j "$(nproc)" -f objs/Makefile binary
}

debian_src=/usr/share/nginx/src

debian_id() {
  if ! [ -x /usr/sbin/nginx ] || ! [ -f "$debian_src/conf_flags" ]; then
    die "Debian's nginx and nginx-dev are needed: apt-get install nginx nginx-dev"
  fi
  dpkg-query -W -f '${Package} ${Version}\n' nginx nginx-dev
}

debian_build() {
  echo "configuring Debian's nginx headers in $out" >&2
  cp -R "$debian_src" "$out/src"
  cd "$out/src"
  # conf_flags sets the array NGX_CONF_FLAGS: what Debian's binary was configured with.
  # shellcheck disable=SC1091
  . ./conf_flags
  logged ./configure "${NGX_CONF_FLAGS[@]}"
}

# configured OPTION DEFAULT: what the binary was configured with.
configured() {
  local value
  value=$("$binary" -V 2>&1 | sed -n "s|.* --$1=\([^ ]*\).*|\1|p")
  echo "${value:-$2}"
}

answer() { # SOURCE_DIR BUILD_DIR
  local prefix modules
  prefix=$(configured prefix /usr/local/nginx)
  modules=$(configured modules-path "$prefix/modules")
  printf "%s='%s'\n" NGINX_SOURCE_DIR "$1" NGINX_BUILD_DIR "$2" NGINX_BINARY "$binary" \
    NGINX_MODULES_PATH "$modules"
}

case $kind in
  vendored) binary=$out/src/objs/nginx ;;
  debian) binary=/usr/sbin/nginx ;;
  own)
    build=$(realpath -e "${NGINX_BUILD_DIR:-${NGINX_SOURCE_DIR:?}/objs}")
    src=$(realpath -e "${NGINX_SOURCE_DIR:-$build/..}")
    binary=$(realpath -e "${NGINX_BINARY:-$build/nginx}")
    answer "$src" "$build"
    exit
    ;;
  *) die "usage: $0 vendored|debian|own" ;;
esac

id=$("${kind}_id")
mkdir -p "$out"
exec 9>"$out/lock"
flock 9 # two makes at a time must not build into one directory
if [ "$id" != "$(cat "$out/stamp" 2>/dev/null)" ]; then
  rm -rf "$out/stamp" "$out/src" "$out/log"
  ("${kind}_build" 9>&-)
  printf '%s\n' "$id" >"$out/stamp"
fi

answer "$out/src" "$out/src/objs"
