"""A scenario's clouds and the paths between them, from bandwidths and round-trip times that were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dlion_sim.errors import InputError
from dlion_sim.scenario import Cluster
from dlion_sim.scenario.complaints import as_input_error
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.matrix import read_csv, read_iperf3, read_iperf3_rtts, read_rtt_csv


def network_block(bandwidths: Path, rtts: Path | None = None) -> dict[str, Any]:
    """The key `cluster` of a scenario: a cloud of one worker for each place, and what is between them.

    Args:
        bandwidths: A CSV matrix, or a folder of iperf3's results.
        rtts: Likewise, of round-trip times; by default those in iperf3's results.

    Raises:
        InputError: One cannot be read, or between some two clouds there is nothing.
    """
    source = rtts or bandwidths
    for file in (bandwidths, source):
        if not file.exists():
            raise InputError("no such file or folder", file=file)
    if rtts is None and not bandwidths.is_dir():
        raise InputError("tells no round-trip times", file=bandwidths, allowed="--rtt FILE beside it")
    try:
        measured = read_iperf3(bandwidths) if bandwidths.is_dir() else read_csv(bandwidths, None)
        times = read_iperf3_rtts(source) if source.is_dir() else read_rtt_csv(source, None)
    except RuleError as error:
        raise InputError(error.problem, allowed=error.allowed) from None
    names = dict.fromkeys([*measured, *(receiver for row in measured.values() for receiver in row)])
    cluster = {
        "clouds": [{"name": name, "workers": [{"count": 1}]} for name in names],
        "wan": {"matrix": measured, "rtt_matrix": times},
    }
    try:
        checked = Cluster.model_validate(cluster)
    except ValidationError as error:
        raise as_input_error(error, cluster, bandwidths) from None
    return {"cluster": checked.model_dump(mode="json", by_alias=True, exclude_unset=True)}
