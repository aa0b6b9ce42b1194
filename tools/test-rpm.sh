#!/usr/bin/env bash
# Installs the RPM package in a scratch root, loads the module from there, and removes it again.
#
#   tools/test-rpm.sh [PACKAGE]      the default: the one that tools/rpm.sh has made
#
# NGINX_BINARY: the nginx that the package is for, if it is not the installed one.
set -eu -o pipefail
# shellcheck source=tools/test-package.sh
. "$(dirname "$0")/test-package.sh"
in_scratch_root "$@"

cd "$top"
name="nginx-module-combined-upstreams"
package=${1:-$(find target/rpm/RPMS -name "$name-[0-9]*.rpm" | sort | tail -n 1)}
[ -f "$package" ] || { echo "test-rpm: no package: make rpm" >&2; exit 1; }
nginx=${NGINX_BINARY:-/usr/sbin/nginx}
[ -x "$nginx" ] || nginx=$(command -v nginx)

if command -v rpmlint >/dev/null; then
  rpmlint=$(rpmlint --strict -r "rpm/$name.rpmlintrc" "$package" target/rpm/SRPMS/*.src.rpm "rpm/$name.spec" 2>&1 || true)
  check 'rpmlint has no complaints' grep ' 0 errors, 0 warnings' <<<"$rpmlint"
  grep -E ': [EW]: ' <<<"$rpmlint" >&2 || true
else
  echo "ok - rpmlint # skip not installed"
fi

version=$("$nginx" -v 2>&1 | sed 's|.*/\([0-9.]*\).*|\1|')
requires=$(rpm -qp --requires "$package")
check "requires nginx $version and no other" \
  grep -xE "nginx\(abi\) = $version|nginx = ([0-9]+:)?$version" <<<"$requires"
fedora=$(rpmspec -q --requires --define '_nginx_abiversion 1.2.3' --define '_nginx_srcdir /src' "rpm/$name.spec")
check 'with the macros of nginx-mod-devel it requires nginx(abi)' grep -x 'nginx(abi) = 1.2.3' <<<"$fedora"

moddir=$(rpm -E '%{?nginx_moddir}%{!?nginx_moddir:%{_libdir}/nginx/modules}')
confdir=$(rpm -E '%{?nginx_modconfdir}%{!?nginx_modconfdir:%{_datadir}/nginx/modules}')

# As on a machine with the package nginx, and with a systemctl that tells what it was asked for.
mkdir -p "$root$moddir" "$root$confdir" "$root/usr/share/licenses"
rm -f "$root$moddir/ngx_http_combined_upstreams_module.so" "$root/usr/bin/systemctl" "$root/usr/bin/upstrandctl"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$*" >>/tmp/systemctl\nexit 1\n' >"$root/usr/bin/systemctl"
chmod 755 "$root/usr/bin/systemctl"
files >"$PACKAGE_TEST_DIR/before"
check 'not there before' without "$nginx" "$confdir/*.conf"

install() { rpm --root "$root" -i --nodeps "$package" 2>"$root/tmp/out"; }
check 'rpm -i' install
if grep -i 'scriptlet failed' "$root/tmp/out" >&2; then check 'scriptlets pass' false; fi
check 'nginx is told to reload, and that it fails does no harm' \
  test "$(cat "$root/tmp/systemctl" 2>/dev/null)" = 'reload nginx.service'
check 'rpm -V' rpm --root "$root" -V --nodeps "$name"
listed=$(rpm --root "$root" -ql "$name")
check 'the licence is there' grep "licenses.*/LICENSE$" <<<"$listed"
check 'the manual is there' grep '/README.md$' <<<"$listed"
check 'the module is there' test -s "$root$moddir/ngx_http_combined_upstreams_module.so"
snippets=("$root$confdir"/*.conf)
check 'the snippet is the last one, also after mod-zstd.conf' test "${snippets[-1]##*/}" \> mod-zstd.conf
check 'a live fail-over, the module loaded by the snippet' live "$nginx" "$confdir/*.conf" "$moddir"
check 'the client is there, with its man page and completions' client "$(rpm -qp --qf '%{VERSION}' "$package")" \
  /usr/share/zsh/site-functions

check 'rpm -e' rpm --root "$root" -e "$name"
files >"$PACKAGE_TEST_DIR/after"
check 'nothing is left' diff "$PACKAGE_TEST_DIR/before" "$PACKAGE_TEST_DIR/after"
check 'not there any more' without "$nginx" "$confdir/*.conf"
exit "$result"
