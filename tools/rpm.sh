#!/usr/bin/env bash
# Builds the RPM packages in target/rpm from what is committed, and prints their paths.
#
#   tools/rpm.sh [--worktree]                 --worktree: from the work tree as it is instead
#   tools/rpm.sh [--worktree] --sources DIR   only the two source archives, into DIR; prints them
#
# Built for the nginx of the package nginx-mod-devel where that is installed (Fedora, RHEL and
# relatives), else for the one that NGINX_BUILD_DIR or NGINX_SOURCE_DIR names (with NGINX_BINARY), else
# for Debian's. RPMBUILD_FLAGS: more options for rpmbuild.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
name="nginx-module-combined-upstreams"
out=$top/target/rpm

die() { echo "rpm.sh: $*" >&2; exit 1; }

worktree='' sources=''
while [ $# -gt 0 ]; do
  case $1 in
    --worktree) worktree=1 ;;
    --sources) shift; mkdir -p "${1:?}"; sources=$(cd "$1" && pwd) ;;
    *) die "usage: rpm.sh [--worktree] [--sources DIR]" ;;
  esac
  shift
done

cd "$top"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ -n "$version" ] || die "no version in Cargo.toml"

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

# pack DIR PATH: PATH in DIR as a tar, the same for the same files.
pack() {
  tar --create --directory "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner --mode=u=rwX,go=rX --format=gnu "$2"
}

# The sources, in TMP/NAME-VERSION.
export_tree() {
  mkdir "$tmp/$name-$version"
  if [ -n "$worktree" ]; then
    git ls-files -z --cached --others --exclude-standard |
      while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
      tar --create --null --files-from=- | tar --extract --directory "$tmp/$name-$version"
  else
    git archive HEAD | tar --extract --directory "$tmp/$name-$version"
  fi
}

# The crates that a build without network needs, in TMP/vendor. cargo wants to see all of Cargo.lock;
# of those that Linux does not compile (bindings of Windows, nginx itself, what only tests use) an
# empty crate remains, of the others all but their tests.
export_crates() {
  local cpu used="$tmp/used"
  cd "$tmp/$name-$version"
  cargo vendor --locked --versioned-dirs --quiet "$tmp/vendor" >/dev/null
  for cpu in x86_64 aarch64 powerpc64le s390x riscv64gc; do
    cargo tree --quiet --locked --workspace --edges normal,build --target "$cpu-unknown-linux-gnu" --prefix none
  done | sed 's/^\([^ ]*\) v\([^ ]*\).*/\1-\2/' | sort -u >"$used"
  perl -MFile::Path=remove_tree,make_path -MJSON::PP - "$used" "$tmp"/vendor/* <<'PERL'
    use strict;
    use warnings;
    sub slurp { local (@ARGV, $/) = @_; <> }
    sub spew { my ($path, $text) = @_; open my $f, '>', $path or die "$path: $!"; print $f $text; close $f or die }
    my %used = map { $_ => 1 } split /\n/, slurp(shift);
    for my $crate (@ARGV) {
        my $sums = decode_json(slurp("$crate/.cargo-checksum.json"));
        if ($used{ $crate =~ s{.*/}{}r }) {
            remove_tree("$crate/tests", "$crate/benches");
            delete @{ $sums->{files} }{ grep { m{^(tests|benches)/} } keys %{ $sums->{files} } };
        }
        else {
            remove_tree(grep { !/\/(Cargo\.toml|\.cargo-checksum\.json)$/ } glob "$crate/{*,.[a-z]*}");
            make_path("$crate/src");
            spew("$crate/src/lib.rs", "// Left out: not compiled on Linux.\n");
            $sums->{files} = {};
        }
        spew("$crate/.cargo-checksum.json", JSON::PP->new->canonical->encode($sums));
    }
PERL
  cd "$top"
}

# make_sources DIR. The crates are packed anew only when Cargo.lock has changed.
make_sources() {
  local tmp crates key
  tmp=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$tmp'" EXIT
  export_tree
  key=$(cat "$tmp/$name-$version/Cargo.lock" tools/rpm.sh | sha256sum | cut -c1-16)
  crates=$top/target/crates/$key.tar.xz
  if [ ! -f "$crates" ]; then
    export_crates
    mkdir -p "${crates%/*}"
    pack "$tmp" vendor | xz -T2 >"$crates.$$"
    mv "$crates.$$" "$crates"
  fi
  pack "$tmp" "$name-$version" | gzip -n >"$1/$name-$version.tar.gz"
  cp "$crates" "$1/$name-$version-vendor.tar.xz"
  rm -rf "$tmp"
}

if [ -n "$sources" ]; then
  make_sources "$sources"
  printf '%s\n' "$sources/$name-$version.tar.gz" "$sources/$name-$version-vendor.tar.xz"
  exit
fi

command -v rpmbuild >/dev/null || die "no rpmbuild: apt-get install rpm, or dnf install rpm-build"
spec=$top/rpm/$name.spec
[ "$(sed -n 's/^Version: *//p' "$spec")" = "$version" ] || die "the spec's Version is not $version"

options=(--define "_topdir $out")
kind=debian
[ -z "$(rpm -E '%{?_nginx_srcdir}')" ] || kind=macros
[ -z "${NGINX_BUILD_DIR-}${NGINX_SOURCE_DIR-}" ] || kind=own
if [ "$kind" != macros ]; then
  nginx=$("$top/tools/nginx.sh" "$kind")
  eval "$nginx"
  options+=(--define "nginx_source $NGINX_SOURCE_DIR" --define "nginx_build $NGINX_BUILD_DIR"
    --define "nginx_binary $NGINX_BINARY")
fi
# Where another package manager rules, what BuildRequires names is there, but rpm can't know.
! command -v dpkg >/dev/null || options+=(--nodeps)

rm -rf "${out:?}"
mkdir -p "$out/SOURCES" "$out/SPECS"
make_sources "$out/SOURCES"
cp "$spec" "$out/SPECS"
# What a make above exports is not for this build.
# shellcheck disable=SC2086
nice env -u MAKEFLAGS -u MAKELEVEL -u CARGO_TARGET_DIR rpmbuild -ba "${options[@]}" \
  ${RPMBUILD_FLAGS-} "$out/SPECS/${spec##*/}" >"$out/log" 2>&1 || {
  tail -n 40 "$out/log" >&2
  die "rpmbuild failed, see $out/log"
}
rm -rf "$out/BUILD" "$out/BUILDROOT"
find "$out/RPMS" "$out/SRPMS" -name '*.rpm' | sort
