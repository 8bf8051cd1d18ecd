#!/usr/bin/env bash
# Installs what `dlion emulate` needs of a Debian or Ubuntu system. Mininet's Python package is the extra `emulation`.
set -euo pipefail
if hash mnexec ifconfig brctl ip tc 2>/dev/null; then
  exit
fi
sudo=(); [ "$(id -u)" = 0 ] || sudo=(sudo)
"${sudo[@]}" apt-get update -q
# Debian's mininet is for its mnexec. It recommends Open vSwitch, which is not used.
"${sudo[@]}" apt-get install -qy --no-install-recommends mininet net-tools bridge-utils iproute2
