#!/usr/bin/env bash
# Installs the Debian packages that the build, the tests and the demo miss, and nothing else:
#
#   tools/deps.sh [--check|--tests] vendored|debian|own|rpm|deb
#
# Looks for the things themselves, not for packages, so that what came another way counts too.
# apt is not called when nothing is missing. --check only says what is missing; --tests adds what the
# tests need beyond the build and the demo.
set -eu

check_only='' for_tests=''
case ${1-} in
  --check) check_only=1; shift ;;
  --tests) for_tests=1; shift ;;
esac
kind=${1:?usage: deps.sh [--check|--tests] vendored|debian|own|rpm|deb}

die() { echo "deps: $*" >&2; exit 1; }

missing=()
need() { # PACKAGE TEST...
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

# pcre2.h wants that macro.
header() { echo "#include <$1>" | cc -DPCRE2_CODE_UNIT_WIDTH=8 -E -; }
any_file() { compgen -G "$1"; }

# bindgen loads libclang at run time and needs the C headers that come with it.
libclang() {
  [ -n "${LIBCLANG_PATH-}" ] || any_file '/usr/lib/llvm-*/lib/clang/*/include/stddef.h' ||
    { ldconfig -p | grep 'libclang[-0-9]*\.so' && command -v clang; }
}

browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

command -v cargo >/dev/null ||
  die "cargo not found: install Rust, see https://rustup.rs (Debian 12's own is too old)"

if command -v cc >/dev/null; then
  need libc6-dev header stdlib.h
  need libssl-dev header openssl/ssl.h
  need libpcre2-dev header pcre2.h
  need zlib1g-dev header zlib.h
else
  # Without a compiler there is no way to ask for headers; apt skips those that are there.
  missing+=(gcc libc6-dev libssl-dev libpcre2-dev zlib1g-dev)
fi
need make command -v make
need libclang-dev libclang
need curl command -v curl
# AddressSanitizer needs the runtime of the clang at hand; else both are Debian's.
asan() { echo 'int main(void) { return 0; }' | clang -fsanitize=address -xc -o /dev/null -; }
asan_runtime() {
  local version
  version=$(clang -dumpversion 2>/dev/null | cut -d. -f1)
  echo "libclang-rt-${version:+$version-}dev"
}

if [ -n "$for_tests" ]; then
  need clang command -v clang
  need "$(asan_runtime)" asan
  need perl command -v prove
  need openssl command -v openssl
  # The bench.
  need python3 command -v python3
  need valgrind command -v valgrind
  need strace command -v strace
  # The servers behind tests/gateways.rs.
  need php-fpm any_file '/usr/sbin/php-fpm[0-9]*'
  need uwsgi-core test -x /usr/bin/uwsgi
  need uwsgi-plugin-python3 test -e /usr/lib/uwsgi/plugins/python3_plugin.so
  need python3-grpcio /usr/bin/python3 -c 'import grpc'
  # What upstrand_status says, and its page.
  need python3-prometheus-client /usr/bin/python3 -c 'import prometheus_client'
  need python3-jsonschema /usr/bin/python3 -c 'import jsonschema'
  need chromium browser
fi
case $kind in
  debian | rpm | deb)
    need nginx test -x /usr/sbin/nginx
    need nginx-dev test -f /usr/share/nginx/src/conf_flags
    ;;
esac
case $kind in
  rpm)
    need rpm command -v rpmbuild
    need rpmlint command -v rpmlint
    need xz-utils command -v xz
    ;;
  deb)
    need dpkg-dev command -v dpkg-buildpackage
    need debhelper command -v dh
    need lintian command -v lintian
    need xz-utils command -v xz
    ;;
esac

[ "${#missing[@]}" -gt 0 ] || exit 0

[ -z "$check_only" ] || die "missing: ${missing[*]} ('make deps' installs them)"
command -v apt-get >/dev/null ||
  die "missing, and there is no apt-get to install it (names as in Debian): ${missing[*]}"

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null ||
    die "missing, and neither root nor sudo to install it. As root run:
  apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo)
fi

echo "deps: going to install with apt-get: ${missing[*]}" >&2
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
"${apt[@]}" update >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
