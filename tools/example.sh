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
  sed "s/^http {/http {$temp/" "$config" >"$dir/nginx.conf"
  if [ -n "$module" ]; then
    ln -sf "$module" "$dir/modules/ngx_http_combined_upstreams_module.so"
  else
    sed -i '/^load_module/d' "$dir/nginx.conf"
  fi
}
