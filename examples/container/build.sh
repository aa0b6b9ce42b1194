#!/usr/bin/env bash
# Builds the module for the nginx of this machine or image, whose source is downloaded:
#
#   build.sh OUT_DIR [NGINX [SOURCE_DIR]]
#
# NGINX is the binary (default: the one in PATH), SOURCE_DIR has the source of the same version if it is
# there already. Needs cargo, a C compiler, make, libclang and what nginx was configured with.
set -eu -o pipefail

out=${1:?usage: build.sh OUT_DIR [NGINX [SOURCE_DIR]]}
nginx=${2:-nginx}
source=${3-}
top=$(cd "$(dirname "$0")/../.." && pwd)
name=ngx_http_combined_upstreams_module

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/nginx"
if [ -n "$source" ]; then
  cp -R "$source/." "$work/nginx"
else
  version=$("$nginx" -v 2>&1 | sed 's|.*/||')
  curl -fsSL "https://nginx.org/download/nginx-$version.tar.gz" |
    tar -xz --strip-components=1 -C "$work/nginx"
fi

# As the binary was configured; its own dynamic modules change nothing in nginx's structures.
eval "flags=($("$nginx" -V 2>&1 | sed -n 's/^configure arguments: //p'))"
# shellcheck disable=SC2154
for i in "${!flags[@]}"; do
  case ${flags[i]} in *=dynamic | --add-dynamic-module=*) unset "flags[i]" ;; esac
done
configure=./configure
[ -x "$work/nginx/configure" ] || configure=auto/configure # a source tree that is no release
(cd "$work/nginx" && "$configure" "${flags[@]}" --builddir=objs) >"$work/log" ||
  { tail "$work/log" >&2; exit 1; }

cd "$top"
NGINX_SOURCE_DIR=$work/nginx NGINX_BUILD_DIR=$work/nginx/objs \
  cargo build --release --locked --target-dir "$work/target"
mkdir -p "$out"
install -m 644 "$work/target/release/lib$name.so" "$out/$name.so"
