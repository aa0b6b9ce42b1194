#!/usr/bin/env bash
# Builds the Debian packages in target/deb from what is committed, for Debian's nginx, and prints their
# paths. cargo takes the crates from the source package and asks no network.
#
#   tools/deb.sh [--worktree]      --worktree: from the work tree as it is instead
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
name=libnginx-mod-http-combined-upstreams
out=$top/target/deb

die() { echo "deb.sh: $*" >&2; exit 1; }

for tool in dpkg-buildpackage dh dh_nginx; do
  command -v "$tool" >/dev/null || die "no $tool: apt-get install dpkg-dev debhelper nginx-dev"
done

rm -rf "${out:?}"
mkdir -p "$out"
# The same archives as for the RPM, under the names that dpkg-source wants.
"$top/tools/rpm.sh" "$@" --sources "$out" >"$out/sources"
{ read -r tree; read -r crates; } <"$out/sources"
rm "$out/sources"
version=${tree##*-}
version=${version%.tar.gz}
mv "$tree" "$out/${name}_$version.orig.tar.gz"
mv "$crates" "$out/${name}_$version.orig-vendor.tar.xz"

cd "$out"
mkdir build
tar --extract --strip-components=1 --directory build --file "${name}_$version.orig.tar.gz"
tar --extract --directory build --file "${name}_$version.orig-vendor.tar.xz"
cd build
packaged=$(dpkg-parsechangelog --show-field Version)
[ "${packaged%-*}" = "$version" ] || die "debian/changelog begins with $packaged, but this is $version"

# -d: Rust may have come from rustup, and dpkg knows nothing of that; what else is missing shows itself.
# What a make above exports is not for this build, and neither is another nginx.
nice env -u MAKEFLAGS -u MAKELEVEL -u CARGO_TARGET_DIR -u NGINX_BUILD_DIR -u NGINX_SOURCE_DIR \
  -u NGINX_BINARY dpkg-buildpackage -us -uc -d >"$out/log" 2>&1 || {
  tail -n 40 "$out/log" >&2
  die "dpkg-buildpackage failed, see $out/log"
}
cd "$out"
rm -rf build
printf '%s\n' "$out"/*.deb "$out"/*.dsc "$out"/*.changes
