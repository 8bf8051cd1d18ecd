"""A whole run on this machine, over an emulated network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dlion_sim.assembly import Setting
from dlion_sim.calibration import Outcome, measure_by_processes
from dlion_sim.emulation.cpu import Processor, processors
from dlion_sim.emulation.leftovers import workplace
from dlion_sim.emulation.links import CONGESTION_CONTROL, in_order
from dlion_sim.emulation.queueing import Queueing
from dlion_sim.errors import InputError
from dlion_sim.live import (
    Address,
    Churn,
    RunNodes,
    Spot,
    Timeouts,
    Timetable,
    announced,
    check_live,
    gather,
)
from dlion_sim.results import Run
from dlion_sim.scenario import DURATION, Scenario

if TYPE_CHECKING:
    from dlion_sim.emulation.network import Network

_FIRST_PORT = 7000


def emulate(
    scenario: Scenario,
    folder: Path,
    *,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    paced: bool = True,
    fair: bool = True,
    timeouts: Timeouts | None = None,
    force: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
    observe: Callable[[float | None], None] = lambda seconds: None,
    meanwhile: Callable[[Network], object] | None = None,
) -> Run:
    """Run a scenario by nodes on hosts of an emulated network and return its run folder; nothing else is left.

    Without pacing, each worker's machine has a part of this machine's CPU, and computations take as long as they take
    there; GPUs are not used. With `fair`, each pair of machines has a queue of its own at each link; otherwise all
    share one. If the scenario's network is modelled by packets, switches have the scenario's queues, as far as this
    kernel supports them. `interrupted`, `observe`, `timeouts` and `force` are as in `run_locally`; `meanwhile` is
    called once nodes train, and the run ends when it returns. Raises InputError for a scenario that cannot be run;
    `check_requirements` finds out whether this machine can.
    """
    # It imports Mininet, which is an extra.
    from dlion_sim.emulation.network import Network

    if not paced:
        if device == "cuda":
            raise InputError("machines without pacing are parts of this one's CPU", file="`device` cuda", allowed="cpu")
        device = "cpu"
    setting = Setting.of(scenario)
    check_live(setting, device)
    timeouts = timeouts or Timeouts.of(scenario)
    queueing = Queueing.of(scenario.network.model, fair=fair)
    emulation = {**queueing.manifest, "congestion_control": CONGESTION_CONTROL}
    about = {"way": "emulate", "paced": paced, "emulation": emulation}
    with ExitStack() as stack:
        hold = stack.enter_context(announced(setting, folder, force=force, manifest=about))
        parts = stack.enter_context(workplace())
        network = stack.enter_context(
            Network(
                scenario.cluster,
                setting.hosts,
                queueing=queueing,
                outages=setting.outages,
                silence=timeouts.silence,
            )
        )
        limited = [] if paced else processors(scenario.cluster, parts.name)
        spots = on_hosts(network, range(setting.participants), limited)
        # The nodes end first, so that changes end if the run has never begun.
        with (
            Timetable() as changes,
            RunNodes(setting, parts, spots, paced=paced, timeouts=timeouts, device=device) as nodes,
            Churn(nodes) as churn,
        ):
            changes.follow(nodes.clock, in_order([*network.links, *network.paths, *limited]))
            churn.begin()

            def over() -> bool:
                if interrupted():
                    return True
                if meanwhile is None or nodes.clock.seconds is None:
                    return False
                meanwhile(network)
                return True

            nodes.wait(over, observe, churn.expects_more)
        if network.paths:
            emulation["outages"] = {"shorter": "8 kbps", "longer": "blackhole routes", "than": timeouts.silence}
        emulation["changes_seconds_late"] = changes.most_seconds_late
        if not paced:
            emulation["cores"] = [processor.share for processor in limited]
        manifest = {**about, **churn.manifest}
        return gather(parts, folder, force=True, hold=hold, manifest=manifest, membership=churn.rows)


def on_hosts(network: Network, participants: Sequence[int], limited: Sequence[Processor] = ()) -> Sequence[Spot]:
    """Nodes on the hosts of these participants; `limited` has the processors of workers, if they are limited."""
    processors = dict(enumerate(limited))

    def spot(participant: int) -> Spot:
        delays = [DURATION.format(network.missing_delay(sender, participant)) for sender in participants]
        processor = processors.get(network.machine[participant])
        return Spot(
            Address(network.address(participant), _FIRST_PORT + participant),
            options=[f"--delays={','.join(delays)}"],
            enter=[*(processor.enter if processor else ()), "mnexec", "-a", str(network.host(participant).pid)],
        )

    return [spot(participant) for participant in participants]


def measure_emulated(
    scenario: Scenario,
    output: Path,
    *,
    seconds: float,
    interrupted: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Measure the paths between the clouds, each from its first worker's host, at the start of the scenario.

    Raises InputError if it cannot be emulated; `check_requirements` finds out whether this machine can.
    """
    from dlion_sim.emulation.network import network_of  # It imports Mininet, which is an extra.

    first: dict[str, int] = {}
    for worker in scenario.cluster.workers:
        first.setdefault(worker.cloud, worker.index)
    if len(first) < 2:
        raise InputError("there is a single one, and so no path", path="cluster.clouds", allowed="two or more")
    with network_of(scenario) as network:
        spots = on_hosts(network, list(first.values()))
        return measure_by_processes(spots, list(first), output, seconds=seconds, interrupted=interrupted)
