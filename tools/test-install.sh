#!/usr/bin/env bash
# What `make paths`, `make install` and `make install-ctl` promise to scripts.
#
#   tools/test-install.sh MAKE [ARGUMENT...]     the make to call
set -eu

make=("${@:?usage: test-install.sh MAKE [ARGUMENT...]}")
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

result=0
check() { # WHAT TEST...
  local what=$1
  shift
  if "$@" >&2; then
    echo "ok - $what"
  else
    echo "not ok - $what"
    result=1
  fi
}

"${make[@]}" --no-print-directory paths >"$dir/paths"
nginx=$(sed -n '1s/^nginx=//p' "$dir/paths")
module=$(sed -n '2s/^module=//p' "$dir/paths")
check 'make paths prints two lines' test "$(wc -l <"$dir/paths")" = 2
check 'make paths: nginx=PATH runs' "$nginx" -v
check 'make paths: module=PATH is a file' test -f "$module"

"${make[@]}" --no-print-directory install DESTDIR="$dir/root" >&2
installed=$(cd "$dir/root" && find . -type f)
modules=$("$nginx" -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')
prefix=$("$nginx" -V 2>&1 | sed -n 's/.*--prefix=\([^ ]*\).*/\1/p')
check 'make install installs one file, where nginx looks for modules' \
  test "$installed" = ".${modules:-${prefix:-/usr/local/nginx}/modules}/${module##*/}"
check 'the file installed is the one built' cmp "$dir/root/$installed" "$module"

"${make[@]}" --no-print-directory install-ctl DESTDIR="$dir/root-ctl" PREFIX=/usr >&2
installed=$(cd "$dir/root-ctl" && find . -type f | sort)
check 'make install-ctl installs the client, its man page and completions' \
  diff - <(echo "$installed") <<END
./usr/bin/upstrandctl
./usr/share/bash-completion/completions/upstrandctl
./usr/share/fish/vendor_completions.d/upstrandctl.fish
./usr/share/man/man1/upstrandctl.1
./usr/share/zsh/site-functions/_upstrandctl
END
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
check 'the client runs' test "$("$dir/root-ctl/usr/bin/upstrandctl" --version)" = "upstrandctl $version"

exit "$result"
