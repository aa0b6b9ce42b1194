# shellcheck shell=bash
# Sourced by what runs the configurations of examples/ as they are.

# example_prefix DIR CONFIG [MODULE]: makes DIR a prefix in which nginx, be it root or not, can run
# a copy of CONFIG (DIR/nginx.conf): with the module, and with nothing written elsewhere.
# Without MODULE it is linked into nginx.
example_prefix() {
  local dir=$1 config=$2 module=${3-} temp='' kind
  chmod 755 "$dir" # workers of a master that is root are somebody else
  mkdir -p "$dir/logs" "$dir/modules"
  for kind in client_body proxy fastcgi uwsgi scgi; do
    temp+=" ${kind}_temp_path temp_$kind;"
  done
  # nginx takes a socket's path from where it was started, not from the prefix.
  sed -e "s/^http {/http {$temp/" -e "s|unix:logs/|unix:$dir/logs/|" "$config" >"$dir/nginx.conf"
  if [ -n "$module" ]; then
    ln -sf "$module" "$dir/modules/ngx_http_combined_upstreams_module.so"
  else
    sed -i '/^load_module/d' "$dir/nginx.conf"
  fi
}

# free_port PORT: nobody listens there.
free_port() { ! (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports: prints the beginning of ten free ports: 1808 for 18080 to 18089, the ports that the
# examples have, or other ones if somebody uses those.
free_ports() {
  local ports=1808 last
  while [ "$ports" -lt 1900 ]; do
    for last in 0 1 2 3 4 5 6 7 8 9; do
      free_port "$ports$last" || break
      [ "$last" != 9 ] || { echo "$ports"; return; }
    done
    ports=$((ports + 1))
  done
  echo "no free ports on 127.0.0.1" >&2
  return 1
}
