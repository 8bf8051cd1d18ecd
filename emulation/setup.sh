#!/usr/bin/env bash
# Installs what `dlion emulate` needs of a Debian or Ubuntu system, and what networks are looked into with (ping, iperf3).
# Mininet's Python package is the extra `emulation`.
set -euo pipefail
if hash mnexec ifconfig brctl ip tc ping iperf3 2>/dev/null; then
  exit
fi
sudo=(); [ "$(id -u)" = 0 ] || sudo=(sudo)
"${sudo[@]}" apt-get update -q
# Debian's mininet is for its mnexec. It recommends Open vSwitch, which is not used. iperf3 would ask whether to serve always.
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
  mininet net-tools bridge-utils iproute2 iputils-ping iperf3
