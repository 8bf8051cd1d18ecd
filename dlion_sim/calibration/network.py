"""A scenario's clouds and the paths between them, from bandwidths and round-trip times that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from pydantic import ValidationError

from dlion_sim.calibration.probe import PathFound
from dlion_sim.calibration.prober import Pair
from dlion_sim.errors import InputError
from dlion_sim.scenario import BANDWIDTH, DURATION, Cluster
from dlion_sim.scenario.faults import RuleError, as_input_error
from dlion_sim.scenario.matrix import read_bandwidths, read_rtts

Matrix = dict[str, dict[str, str]]
"""Quantities by sending and then by receiving cloud, as a scenario has them."""


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
        measured, times = read_bandwidths(bandwidths), read_rtts(source)
    except RuleError as error:
        raise InputError(error.problem, allowed=error.allowed) from None
    names = dict.fromkeys([*measured, *(receiver for row in measured.values() for receiver in row)])
    try:
        return _block(list(names), measured, times)
    except InputError as error:
        raise error.within(bandwidths) from None


def matrices(names: Sequence[str], paths: Mapping[Pair, PathFound]) -> tuple[Matrix, Matrix]:
    """The bandwidth and the round-trip time from each place to each other one, of paths between all of them.

    A round trip is the least of both ways'.
    """
    bandwidths: Matrix = {name: {} for name in names}
    rtts: Matrix = {name: {} for name in names}
    for (sender, receiver), path in sorted(paths.items()):
        a, b = names[sender], names[receiver]
        least = min(path.round_trip, paths[receiver, sender].round_trip)
        bandwidths[a][b] = BANDWIDTH.format(_rounded(path.bps))
        rtts[a][b] = DURATION.format(_rounded(least))
    return bandwidths, rtts


def network_of(paths: Mapping[Pair, PathFound]) -> dict[str, Any]:
    """The key `network` of a scenario: the acknowledgements that came on the median path."""
    acknowledgements = median(path.acknowledgements for path in paths.values())
    return {"network": {"model": {"kind": "flows", "acknowledgements": _rounded(acknowledgements)}}}


def block_of(bandwidths: Matrix, rtts: Matrix) -> dict[str, Any]:
    """The key `cluster` of a scenario, as `network_block`. Raises InputError for an invalid name of a place."""
    return _block(list(bandwidths), bandwidths, rtts)


def check_names(names: Sequence[str], nodes: int) -> None:
    """Raise InputError unless these are valid names of so many clouds."""
    if len(names) != nodes or len(set(names)) != nodes:
        raise InputError(f"{', '.join(names)}", file="`names`", allowed=f"{nodes} different ones, in the nodes' order")
    try:
        block_of(
            *({one: {other: zero for other in names if other != one} for one in names} for zero in ("1 bps", "0 s"))
        )
    except InputError as error:
        raise error.within("`names`") from None


def csv(matrix: Matrix) -> str:
    """The matrix as a file that a scenario and `network_block` can take."""
    names = list(matrix)
    return str(pd.DataFrame.from_dict(matrix, orient="index").reindex(names, columns=names).to_csv(na_rep="-"))


def _block(names: Sequence[str], measured: Mapping[str, Any], times: Mapping[str, Any]) -> dict[str, Any]:
    cluster = {
        "clouds": [{"name": name, "workers": [{"count": 1}]} for name in names],
        "wan": {"matrix": measured, "rtt_matrix": times},
    }
    try:
        checked = Cluster.model_validate(cluster)
    except ValidationError as error:
        raise as_input_error(error, cluster, None) from None
    return {"cluster": checked.model_dump(mode="json", by_alias=True, exclude_unset=True)}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
