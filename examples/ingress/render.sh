#!/bin/sh
# Makes a file in CONF_DIR of each line of SERVICES, and reloads nginx if that has changed anything:
#
#   render.sh SERVICES TEMPLATE CONF_DIR NGINX [OPTION...]
#
# A service without servers elsewhere gets no line of the template with "_far" in it. Says "unchanged"
# or "reloaded". If nginx refuses the result, CONF_DIR stays as it was.
set -eu

services=${1:?usage: render.sh SERVICES TEMPLATE CONF_DIR NGINX [OPTION...]}
template=${2:?}
conf_dir=${3:?}
shift 3

mkdir -p "$conf_dir"
new=$(mktemp -d "$conf_dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"

# servers LIST: LIST is a,b,c; prints "server a; server b; server c;".
servers() { echo "$1" | sed 's/,/; server /g; s/^/server /; s/$/;/'; }

while read -r name host near far rest; do
  case $name in '' | '#'*) continue ;; esac
  # Nothing that nginx or sed would take for more than a word.
  case $name in *[!A-Za-z0-9_]*) echo "render.sh: bad name: $name" >&2; exit 1 ;; esac
  case $host$near$far in *[!][A-Za-z0-9_.:,*-]*) echo "render.sh: bad line of $name" >&2; exit 1 ;; esac
  if [ -z "$near" ] || [ -n "$rest" ]; then echo "render.sh: bad line of $name" >&2; exit 1; fi
  without=
  [ -n "$far" ] || without='/_far/d;'
  sed "$without s/@NAME@/$name/g; s/@HOST@/$host/g
    s/@NEAR@/$(servers "$near")/g; s/@FAR@/$(servers "$far")/g" "$template" >"$new/$name.conf"
done <"$services"

if diff -r "$conf_dir" "$new" >/dev/null; then
  echo unchanged
  exit
fi

mv "$conf_dir" "$new.old"
mv "$new" "$conf_dir"
if ! "$@" -t -q; then
  mv "$conf_dir" "$new"
  mv "$new.old" "$conf_dir"
  exit 1
fi
rm -rf "$new.old"
"$@" -s reload
echo reloaded
