"""A whole live run on this machine: a process per participant, connected over loopback."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dlion_sim.assembly import Recorder, Setting
from dlion_sim.learning.process import Device
from dlion_sim.live.churn import Churn
from dlion_sim.live.gathering import gather, manifest_of
from dlion_sim.live.member import check_live
from dlion_sim.live.node_config import Timeouts
from dlion_sim.live.nodes import on_loopback
from dlion_sim.live.run_nodes import RunNodes
from dlion_sim.results import Ending, FolderLock, Run, RunWriter
from dlion_sim.scenario import Scenario, dump


def run_locally(
    scenario: Scenario,
    folder: Path,
    *,
    device: Device = "auto",
    paced: bool = True,
    timeouts: Timeouts | None = None,
    force: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
    observe: Callable[[float | None], None] = lambda seconds: None,
) -> Run:
    """Run a scenario by nodes on this machine and return its run folder. No process is left afterwards.

    Several GPUs are distributed to the nodes in turn. `interrupted` and `observe` are called many times a second: once
    the former is true, the run ends, in a folder that says so; the latter gets the seconds since nodes began to train,
    or None. `timeouts` are by default the scenario's. `force` replaces a run in `folder`. Raises InputError for a
    scenario that cannot be run.
    """
    setting = Setting.of(scenario)
    check_live(setting, device)
    timeouts = timeouts or Timeouts.of(scenario)
    with ExitStack() as stack:
        hold = stack.enter_context(announced(setting, folder, force=force))
        parts = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent)))
        spots = on_loopback(setting.participants)
        nodes = RunNodes(setting, parts, spots, paced=paced, timeouts=timeouts, device=device)
        with nodes, Churn(nodes) as churn:
            churn.begin()
            nodes.wait(interrupted, observe, churn.expects_more)
        return gather(parts, folder, force=True, hold=hold, manifest=churn.manifest, membership=churn.rows)


@contextmanager
def announced(
    setting: Setting, folder: Path, *, force: bool, manifest: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[FolderLock]:
    """Within the block, the run folder says that the run is in progress; `gather` with the value replaces it.

    If the block fails, the folder says so. `manifest` is added to that of every live run. Raises InputError if the
    folder cannot be used; `force` replaces a run in it.
    """
    writer = RunWriter.create(
        folder,
        scenario_yaml=dump(setting.scenario),
        manifest={**manifest_of(setting), **manifest},
        force=force,
    )
    try:
        yield writer.hold
    except BaseException as error:
        nothing = Recorder(writer, range(setting.workers))
        writer.finish(nothing.summary(Ending("failed", str(error) or repr(error), 0.0)))
        raise
