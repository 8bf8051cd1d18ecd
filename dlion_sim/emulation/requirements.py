"""What this machine needs to emulate a network."""

from __future__ import annotations

import os
import shutil
import subprocess

from dlion_sim.emulation.cpu import cpu_controller
from dlion_sim.errors import InputError

_TOOLS = {"mnexec": "mininet", "ifconfig": "net-tools", "brctl": "bridge-utils", "ip": "iproute2", "tc": "iproute2"}
"""The Debian package of each."""
_BY_HAND = {"ping": "iputils-ping"}
"""For inspecting networks."""


def check_requirements(*, paced: bool = True, by_hand: bool = False) -> None:
    """Raise InputError, with a remedy, unless this machine can emulate, with pacing or without.

    With `by_hand`, it also needs the tools for inspecting networks.
    """
    tools = _TOOLS | _BY_HAND if by_hand else _TOOLS
    packages = {package for tool, package in tools.items() if shutil.which(tool) is None}
    if packages:
        names = " ".join(sorted(packages))
        raise InputError(f"emulation needs system packages: apt-get install --no-install-recommends {names}")
    try:
        import mininet.node  # noqa: F401
    except ImportError as error:
        raise InputError(f"emulation needs Mininet ({error}): pip install 'dlion-sim[emulation]'") from None
    if os.geteuid() != 0:
        raise InputError('emulation needs root: the same command after sudo env "PATH=$PATH"')
    # Root in a container may lack capabilities.
    tried = subprocess.run(["mnexec", "-n", "true"], capture_output=True, text=True)
    if tried.returncode:
        raise InputError(
            f"emulation needs the right to make network namespaces ({tried.stderr.strip() or 'mnexec failed'}); "
            "in a container: docker run --privileged"
        )
    if not paced:
        cpu_controller()


def has_netem() -> bool:
    """Whether the kernel can delay packets."""
    return _can("tc qdisc add dev lo root netem delay 1ms")


def has_red() -> bool:
    """Whether the kernel has queues by priority, and queues that mark or drop packets above a threshold."""
    return _can("tc qdisc add dev lo root prio") and _can("tc qdisc add dev lo root red limit 60000 avpkt 1000")


def _can(command: str) -> bool:
    """Whether a command succeeds in a network namespace of its own."""
    return subprocess.run(["mnexec", "-n", *command.split()], capture_output=True).returncode == 0
