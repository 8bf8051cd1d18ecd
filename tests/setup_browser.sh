#!/usr/bin/env bash
# Installs what the tests of pages need of a Debian or Ubuntu system: Chromium and its driver.
set -euo pipefail
if hash chromium chromedriver 2>/dev/null; then
  exit
fi
sudo=(); [ "$(id -u)" = 0 ] || sudo=(sudo)
"${sudo[@]}" apt-get update -q
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends chromium chromium-driver
