"""Mininet's command line on the network of a scenario."""

from __future__ import annotations

import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mininet.cli import CLI
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge

from dlion_sim.emulation.network import Network, network_of
from dlion_sim.interrupts import Interrupts
from dlion_sim.scenario import Scenario

_REQUESTS_TO_END = (signal.SIGTERM, signal.SIGHUP)
"""A terminal sends the latter when it is closed."""


def open_console(scenario: Scenario, *, fair: bool = True) -> None:
    """Build a scenario's network and run commands until `exit`; nothing of the network is left afterwards.

    Raises KeyboardInterrupt on Ctrl-C or a request to terminate, InputError for a scenario whose network cannot be
    emulated.
    """
    with Interrupts() as interrupts, network_of(scenario, fair=fair) as network:
        if interrupts.asked() or not obey(network):
            raise KeyboardInterrupt


def obey(network: Network) -> bool:
    """Run commands until `exit`: True; or until Ctrl-C at the prompt, or a request to terminate: False."""
    whole = _Whole(network)
    width = max(map(len, whole))
    for node, what in network.nodes.items():
        print(f"{node.name:<{width}}  {node.IP() or '':<15}  {what}".rstrip())
    setLogLevel("output")
    try:
        with _signals(), _terminal():
            _Console(whole, stdin=sys.stdin)
    except (KeyboardInterrupt, SystemExit):
        print()
        return False
    finally:
        setLogLevel("error")
    return True


class _Whole(Mininet):  # type: ignore[misc]
    """A network as Mininet's command line expects it. Pings are between hosts, commands are for every node."""

    inited = True
    """Otherwise Mininet raises limits of this machine."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.nameToNode = {node.name: node for node in network.nodes}
        self.hosts = network.hosts
        self.switches = [node for node in network.nodes if isinstance(node, LinuxBridge)]
        for switch in self.switches:
            switch.controlIntf = None  # Mininet forgets it for one in a namespace of its own, and asks for it.
        devices = [device for node in network.nodes for device in node.intfList()]
        self.links = list(dict.fromkeys(device.link for device in devices if device.link))

    def __iter__(self) -> Iterator[str]:
        return iter(self.nameToNode)

    def __len__(self) -> int:
        return len(self.nameToNode)


class _Console(CLI):  # type: ignore[misc]
    """Ctrl-C ends a running command, or at the prompt everything."""

    def run(self) -> None:
        """Run commands; Mininet's own method continues after Ctrl-C."""
        # Without a terminal, `input` drops what a signal's handler raises while the prompt is written.
        self.use_rawinput = self.stdin.isatty()
        self.cmdloop()

    def onecmd(self, line: str) -> bool:
        try:
            return bool(super().onecmd(line))
        except KeyboardInterrupt:
            print("\nInterrupt")
            for node in self.mn.values():
                while node.waiting:
                    node.sendInt()
                    node.waitOutput()
            return False


@contextmanager
def _signals() -> Iterator[None]:
    """Turn Ctrl-C into KeyboardInterrupt, which Mininet passes on to a host's command, and requests to terminate into
    SystemExit, which it ignores.
    """
    handlers: dict[signal.Signals, Callable[..., Any]] = dict.fromkeys(_REQUESTS_TO_END, _end)
    handlers[signal.SIGINT] = signal.default_int_handler
    former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def _terminal() -> Iterator[None]:
    """Restore the terminal's settings, which commands may change."""
    former = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    try:
        yield
    finally:
        if former:
            with suppress(termios.error):  # It may have been closed.
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, former)


def _end(number: int, frame: object) -> None:
    raise SystemExit
