#!/usr/bin/env bash
# Makes an nginx to build and test against and prints where it is, as shell assignments:
#   NGINX_SOURCE_DIR    source tree (headers)
#   NGINX_BUILD_DIR     result of its configure (objs/)
#   NGINX_BINARY        the nginx to run
#   NGINX_MODULES_PATH  where that one looks for modules
#
#   tools/nginx.sh vendored   nginx of the crate nginx-src (the version in Cargo.lock), built once
#   tools/nginx.sh debian     Debian's own nginx; its headers (nginx-dev) configured as the binary was
#   tools/nginx.sh SUITE      bookworm, trixie, forky or sid: the nginx that Debian has there, unpacked in
#                             target/ and nowhere else; with its own libraries if this machine's
#                             are too old for it
#   tools/nginx.sh own        the one that NGINX_BUILD_DIR, NGINX_SOURCE_DIR (one of them is enough)
#                             and NGINX_BINARY (default: the one in NGINX_BUILD_DIR) name
#
# All else goes to stderr. A stamp makes every run but the first one a no-op.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
kind=${1-}
out=$top/target/nginx/$kind
maker=$kind
root=

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
  configure_headers "$debian_src"
}

configure_headers() { # DIRECTORY
  echo "configuring Debian's nginx headers in $out" >&2
  cp -R "$1" "$out/src"
  cd "$out/src"
  # conf_flags sets the array NGX_CONF_FLAGS: what Debian's binary was configured with.
  # shellcheck disable=SC1091
  . ./conf_flags
  logged ./configure "${NGX_CONF_FLAGS[@]}"
}

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# What the suite has is taken as it is when it is fetched first; removing the directory takes it anew.
suite_id() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null || ! [ -f "$keyring" ]; then
    die "apt-get, dpkg and $keyring are needed for Debian's $kind"
  fi
  echo "$kind 1"
}

suite_build() {
  local mirror
  # The mirror that this machine uses, if it is one of Debian's.
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    grep -m 1 '/debian/*$' || echo http://deb.debian.org/debian)
  echo "fetching nginx of Debian's $kind from $mirror into $out" >&2
  mkdir -p "$out/apt/lists/partial" "$out/apt/cache/archives/partial" "$out/root"
  cd "$out/apt"
  echo "deb [signed-by=$keyring] $mirror $kind main" >sources.list
  # Lists, cache and state are its own, so that apt sees nothing of this machine and changes nothing.
  cat >apt.conf <<EOF
Dir::Etc::sourcelist "$PWD/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$PWD";
Dir::State::lists "$PWD/lists";
Dir::State::status "/dev/null";
Dir::Cache "$PWD/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
EOF
  export APT_CONFIG=$PWD/apt.conf
  logged apt-get -q update
  suite_unpack nginx nginx-dev
  if ! "$out/root/usr/sbin/nginx" -v >/dev/null 2>&1; then
    suite_libraries
  fi
  rm -rf "$out/apt"
  configure_headers "$out/root$debian_src"
}

suite_unpack() { # PACKAGE...
  local deb
  logged apt-get -q download "$@"
  for deb in ./*.deb; do
    logged dpkg -x "$deb" "$out/root"
    rm "$deb"
  done
}

# Its own libraries, by its own loader: a script in the place of the binary starts it with them.
# nginx starts the script again in a binary upgrade, as that is its name for itself.
suite_libraries() {
  local loader binary=$out/root/usr/sbin/nginx
  local -a libraries
  mapfile -t libraries < <(apt-cache depends nginx |
    sed -n 's/^ *Depends: \(lib[^ ]*\|zlib1g\)$/\1/p')
  mapfile -t libraries < <(apt-cache depends --recurse -i "${libraries[@]}" |
    grep -x 'lib[^ ]*\|zlib1g')
  suite_unpack "${libraries[@]}"
  loader=$(compgen -G "$out/root/usr/lib*/ld-linux*.so.*" | head -n 1 || true)
  loader=${loader:-$(compgen -G "$out/root/usr/lib/*-linux-gnu*/ld-linux*.so.*" | head -n 1)}
  mv "$binary" "$binary.bin"
  cat >"$binary" <<EOF
#!/bin/sh
exec '$loader' --argv0 '$binary' --library-path \
  '$(dirname "$(compgen -G "$out/root/usr/lib/*-linux-gnu*/libc.so.6")")' '$binary.bin' "\$@"
EOF
  chmod 755 "$binary"
  logged "$binary" -v
}

# configured OPTION DEFAULT: what the binary was configured with.
configured() {
  local value
  value=$("$binary" -V 2>&1 | sed -n "s|.* --$1=\([^ ]*\).*|\1|p")
  echo "${value:-$2}"
}

answer() { # SOURCE_DIR BUILD_DIR [ROOT]
  local prefix modules
  prefix=$(configured prefix /usr/local/nginx)
  modules=${3-}$(configured modules-path "$prefix/modules")
  printf "%s='%s'\n" NGINX_SOURCE_DIR "$1" NGINX_BUILD_DIR "$2" NGINX_BINARY "$binary" \
    NGINX_MODULES_PATH "$modules"
}

case $kind in
  vendored) binary=$out/src/objs/nginx ;;
  debian) binary=/usr/sbin/nginx ;;
  bookworm | trixie | forky | sid)
    maker=suite
    root=$out/root
    binary=$root/usr/sbin/nginx
    ;;
  own)
    build=$(realpath -e "${NGINX_BUILD_DIR:-${NGINX_SOURCE_DIR:?}/objs}")
    src=$(realpath -e "${NGINX_SOURCE_DIR:-$build/..}")
    binary=$(realpath -e "${NGINX_BINARY:-$build/nginx}")
    answer "$src" "$build"
    exit
    ;;
  *) die "usage: $0 vendored|debian|SUITE|own" ;;
esac

id=$("${maker}_id")
mkdir -p "$out"
exec 9>"$out/lock"
flock 9 # two makes at a time must not build into one directory
if [ "$id" != "$(cat "$out/stamp" 2>/dev/null)" ]; then
  rm -rf "$out/stamp" "$out/src" "$out/log" "$out/root" "$out/apt"
  ("${maker}_build" 9>&-)
  printf '%s\n' "$id" >"$out/stamp"
fi

answer "$out/src" "$out/src/objs" "$root"
