#!/usr/bin/env bash
# Installs upstrandctl with its man page and the completions for shells, which it prints itself.
#
#   tools/install-ctl.sh BINARY PREFIX [DIR]    DIR, below PREFIX: for zsh, if not share/zsh/site-functions
set -eu -o pipefail

binary=${1:?usage: install-ctl.sh BINARY PREFIX [DIR]}
prefix=${2:?usage: install-ctl.sh BINARY PREFIX [DIR]}
zsh=${3:-share/zsh/site-functions}

completion() { # SHELL FILE
  "$binary" completion "$1" | install -D -m 644 /dev/stdin "$prefix/$2"
}

install -D -m 755 "$binary" "$prefix/bin/upstrandctl"
install -D -m 644 "$(dirname "$0")/../upstrandctl/upstrandctl.1" "$prefix/share/man/man1/upstrandctl.1"
completion bash share/bash-completion/completions/upstrandctl
completion zsh "$zsh/_upstrandctl"
completion fish share/fish/vendor_completions.d/upstrandctl.fish
