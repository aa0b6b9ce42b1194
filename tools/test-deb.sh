#!/usr/bin/env bash
# Installs the Debian package in a scratch root, where it must enable itself, and purges it again.
#
#   tools/test-deb.sh [PACKAGE]      the default: the one that tools/deb.sh has made
set -eu -o pipefail
# shellcheck source=tools/test-package.sh
. "$(dirname "$0")/test-package.sh"
in_scratch_root "$@"

cd "$top"
name=libnginx-mod-http-combined-upstreams
package=$(realpath -e "${1:-$(find target/deb -name "${name}_*.deb" | sort | tail -n 1)}") ||
  { echo "test-deb: no package: make deb" >&2; exit 1; }
changes=${package%.deb}.changes
nginx=/usr/sbin/nginx
enabled=/etc/nginx/modules-enabled

if ! command -v lintian >/dev/null; then
  echo "ok - lintian # skip not installed"
elif [ -f "$changes" ]; then
  check 'lintian has no complaints' lintian --allow-root --fail-on error,warning "$changes"
fi

abi=$(dpkg-query -W -f '${Provides}' nginx | grep -o 'nginx-abi-[^, ]*')
check "depends on $abi" grep -wF -- "$abi" <<<"$(dpkg-deb -f "$package" Depends)"

# Whatever came here another way.
run dpkg --purge "$name" >/dev/null 2>&1 || true
rm -f "$root/usr/lib/nginx/modules/ngx_http_combined_upstreams_module.so" "$root/usr/bin/upstrandctl"
files >"$PACKAGE_TEST_DIR/before"
check 'not there before' without "$nginx" "$enabled/*.conf"

dpkg_quietly() { run dpkg "$@" >"$root/tmp/out" 2>&1 || { cat "$root/tmp/out"; return 1; }; }
site() { # nginx as the machine has it, and a site that uses the module
  echo 'upstream u { server 127.0.0.1; } upstrand s { upstream u; }' >"$root/etc/nginx/conf.d/upstrand.conf"
  run "$nginx" -t 2>&1 || status=1
  rm "$root/etc/nginx/conf.d/upstrand.conf"
  return "${status:-0}"
}
last() {
  local links=("$root$enabled"/*.conf)
  [ "$(readlink "${links[-1]}")" = /usr/share/nginx/modules-available/mod-http-combined-upstreams.conf ]
}

check 'dpkg -i' dpkg_quietly -i "$package"
check 'it is enabled by itself, after all others' last
check "nginx -t with /etc/nginx/nginx.conf and a site that uses the module" site
check 'a live fail-over, the module loaded as enabled' live "$nginx" "$enabled/*.conf" /usr/lib/nginx/modules
version=$(dpkg-deb -f "$package" Version)
check 'the client is there, with its man page and completions' client "${version%-*}" \
  /usr/share/zsh/vendor-completions
check 'the licence is there' test -s "$root/usr/share/doc/$name/copyright"
check 'the manual is there' test -s "$root/usr/share/doc/$name/README.md.gz"

check 'dpkg -r' dpkg_quietly -r "$name"
check 'not there any more' without "$nginx" "$enabled/*.conf"
check 'nginx -t with /etc/nginx/nginx.conf after that' run "$nginx" -q -t
check 'dpkg -i again' dpkg_quietly -i "$package"
check 'it is enabled again' last
check 'dpkg --purge' dpkg_quietly --purge "$name"
files >"$PACKAGE_TEST_DIR/after"
check 'nothing is left' diff "$PACKAGE_TEST_DIR/before" "$PACKAGE_TEST_DIR/after"
exit "$result"
