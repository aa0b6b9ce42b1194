#!/usr/bin/env bash
# Runs the suites (t/*.t, and cargo test with tests/*.rs) on several versions of nginx:
#
#   tools/matrix.sh [NGINX...]
#
# NGINX is a word that tools/nginx.sh knows; the default is bookworm (Debian 12, nginx 1.22), trixie
# (Debian 13, 1.26), vendored (1.28) and forky (Debian testing, 1.30 or what is there now). Nothing
# is installed: each has its nginx, its build and its logs under target/. MATRIX_TARGETS are the
# targets of make to run on each (default: test-unit test-t). All are run; the summary at the end
# says which of them failed.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
[ "$#" -gt 0 ] || set -- bookworm trixie vendored forky
read -r -a targets <<<"${MATRIX_TARGETS:-test-unit test-t}"
make=${MAKE:-make}

# An outer make's variables and flags are not for these.
unset MAKEFLAGS MAKEOVERRIDES MAKELEVEL CARGO_TARGET_DIR
unset NGINX NGINX_BUILD_DIR NGINX_SOURCE_DIR NGINX_BINARY NGINX_MODULES_PATH

summary=()
failed=0
for nginx in "$@"; do
  out=$top/target/matrix/$nginx
  mkdir -p "$out"
  # So that two of them may run at a time.
  export TEST_NGINX_SERVROOT=$out/servroot
  version='no nginx'
  for target in build "${targets[@]}"; do
    log=$out/$target.log
    echo "== $nginx: make $target" >&2
    result=ok
    start=$SECONDS
    "$make" "NGINX=$nginx" "$target" >"$log" 2>&1 || result='not ok'
    if [ "$target" = build ] && [ "$result" = ok ]; then
      version=$(eval "$(tools/nginx.sh "$nginx" 2>/dev/null)" && "$NGINX_BINARY" -v 2>&1 |
        sed 's/.*: //')
    fi
    summary+=("$result - $target on $version ($nginx), $((SECONDS - start)) s")
    if [ "$result" != ok ]; then
      failed=1
      # What failed is far above the end, and cargo and prove say it again there.
      tail -n 60 "$log" >&2
      [ "$target" != build ] || break
    fi
  done
done

printf '%s\n' "${summary[@]}"
exit "$failed"
