# shellcheck shell=bash disable=SC2034
# Sourced by test-rpm.sh and test-deb.sh, which install a package for good and all, yet nowhere: into
# a copy-on-write view of this machine, which is gone when they end.

top=$(cd "$(dirname "$0")/.." && pwd)
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

# in_scratch_root "$@": runs the script again, with processes and mounts of its own, and with $root,
# where this machine can be changed. What is in front of it runs twice.
in_scratch_root() {
  local dir status=0 as_root=()
  if [ -n "${PACKAGE_TEST_DIR-}" ]; then
    root=$PACKAGE_TEST_DIR/root
    mount -t tmpfs tmpfs "$PACKAGE_TEST_DIR" || exit 77
    mkdir "$PACKAGE_TEST_DIR/upper" "$PACKAGE_TEST_DIR/work" "$root"
    mount -t overlay overlay "$root" \
      -o "lowerdir=/,upperdir=$PACKAGE_TEST_DIR/upper,workdir=$PACKAGE_TEST_DIR/work" || exit 77
    mount --bind "$top" "$root$top"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    return
  fi
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || { echo "ok - ${0##*/} # skip needs root, or sudo without password"; exit; }
    as_root=(sudo)
  fi
  "${as_root[@]}" unshare --mount --pid --fork true ||
    { echo "ok - ${0##*/} # skip no namespaces here"; exit; }
  dir=$(mktemp -d)
  "${as_root[@]}" env PATH="$PATH" PACKAGE_TEST_DIR="$dir" NGINX_BINARY="${NGINX_BINARY-}" \
    unshare --mount --pid --fork --kill-child "$0" "$@" || status=$?
  rmdir "$dir"
  if [ "$status" = 77 ]; then
    echo "ok - ${0##*/} # skip no overlay file system here"
    status=0
  fi
  exit "$status"
}

run() { chroot "$root" "$@"; }

# What a package may have changed. (The package managers' own books are not ours.)
files() {
  (cd "$root" && find etc usr var -xdev \( -path var/lib/dpkg -o -path var/lib/rpm -o -path var/log \
    -o -path var/cache \) -prune -o -printf '%p %y %l\n' | sort)
}

# without NGINX FILES: nginx as FILES have it does not know the module.
without() {
  printf 'include %s;\nevents {}\nhttp { upstream u { server 127.0.0.1; } upstrand s { upstream u; } }\n' \
    "$2" >"$root/tmp/nginx.conf"
  ! run "$1" -t -e /tmp/error.log -c /tmp/nginx.conf -g 'pid /tmp/nginx.pid;' 2>"$root/tmp/out" &&
    grep -q 'unknown directive "upstrand"' "$root/tmp/out"
}

# live NGINX FILES DIR: the live fail-over, with what FILES load and no other module. What they name
# as modules/... is in DIR.
live() {
  cat >"$root/tmp/nginx-packaged" <<END
#!/bin/bash
arguments=()
for i; do
  case \$option in
    -g) i="include $2; \$i" ;;
    -p) rmdir "\$i/modules" && ln -s "$3" "\$i/modules" ;;
  esac
  arguments+=("\$i")
  option=\$i
done
exec "$1" "\${arguments[@]}"
END
  chmod 755 "$root/tmp/nginx-packaged"
  run "$top/tools/demo.sh" /tmp/nginx-packaged
}

# client VERSION ZSH: upstrandctl runs, says VERSION, and comes with a man page that man understands and
# with completions; those for zsh are in ZSH.
client() {
  local page=$root/usr/share/man/man1/upstrandctl.1.gz
  [ "$(run /usr/bin/upstrandctl --version)" = "upstrandctl $1" ] || return
  gzip -t "$page" || return
  if command -v lexgrog >/dev/null; then lexgrog "$page" || return; fi
  bash -n "$root/usr/share/bash-completion/completions/upstrandctl" || return
  test -s "$root$2/_upstrandctl" && test -s "$root/usr/share/fish/vendor_completions.d/upstrandctl.fish"
}
