"""A whole run on this machine, over an emulated network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from dlion_sim.emulation.changes import Changes
from dlion_sim.emulation.leftovers import workplace
from dlion_sim.emulation.link import CONGESTION_CONTROL
from dlion_sim.emulation.machine import has_netem
from dlion_sim.live import DEFAULT_PATIENCE, Address, Nodes, Patience, Spot, announced, check_live, gather
from dlion_sim.participants import Setting
from dlion_sim.results import Run
from dlion_sim.scenario import Scenario

if TYPE_CHECKING:
    from dlion_sim.emulation.network import Network

_FIRST_PORT = 7000
_LEAST_DELAY = 0.001
"""What is shorter is left away: a message takes about as long on this machine."""


def emulate(
    scenario: Scenario,
    folder: Path,
    *,
    patience: Patience = DEFAULT_PATIENCE,
    force: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
) -> Run:
    """Run a scenario by nodes on hosts of an emulated network and return its run folder; nothing else is left.

    `interrupted` is asked many times a second, and once it says so the run ends there, in a folder that tells it.
    `force` replaces a run that `folder` holds. Raises InputError for a scenario that cannot be run; `check_machine`
    says whether this machine can.
    """
    from dlion_sim.emulation.network import Network  # It imports Mininet, which is an extra.

    setting = Setting.of(scenario)
    check_live(setting)
    delayed = has_netem()
    emulation = {"delay": "kernel" if delayed else "transport", "congestion_control": CONGESTION_CONTROL}
    about = {"way": "emulate", "emulation": emulation}
    with ExitStack() as stack:
        stack.enter_context(announced(setting, folder, force=force, manifest=about))
        parts = stack.enter_context(workplace())
        network = stack.enter_context(Network(scenario.cluster, setting.hosts, delayed=delayed))
        # The nodes end first, so that changes learn of it where the run has never begun.
        with Changes(network.links) as changes, EmulatedNodes(setting, parts, network, patience) as nodes:
            changes.follow(nodes.begun)
            nodes.wait(interrupted)
        measured = {"emulation": {**emulation, "changes_seconds_late": changes.most_seconds_late}}
        return gather(parts, folder, force=True, manifest={**about, **measured})


class EmulatedNodes(Nodes):
    """Nodes on the hosts of a network."""

    def __init__(self, setting: Setting, parts: Path, network: Network, patience: Patience) -> None:
        super().__init__(setting, parts, paced=True, patience=patience)
        self._network = network

    def spots(self, opened: ExitStack) -> Sequence[Spot]:
        """Each participant's host."""
        return [self._spot(rank) for rank in range(self.setting.participants)]

    def _spot(self, rank: int) -> Spot:
        missing = [self._network.missing_delay(sender, rank) for sender in range(self.setting.participants)]
        delays = ",".join(str(delay if delay >= _LEAST_DELAY else 0.0) for delay in missing)
        return Spot(
            Address(self._network.address(rank), _FIRST_PORT + rank),
            options=[f"--delays={delays}"],
            enter=["mnexec", "-a", str(self._network.host(rank).pid)],
        )
