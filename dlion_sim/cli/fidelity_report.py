"""The report of a comparison of a real run with a simulated one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlion_sim.analysis import Fidelity
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.results import Run
from dlion_sim.results.numbers import in_bytes


def fidelity_report(fidelity: Fidelity, run: Run, figure: Path) -> RenderableType:
    """The differences between a real run and the simulated `run`."""
    names = run.manifest["workers"]
    title = f"{run.manifest['scenario']} · {run.system}: real against simulated"
    workers = Table(title=title, title_justify="left", box=SIMPLE_HEAD, caption="ratio: to the simulated")
    _add_pairs(workers, "worker", ("iterations", "median (s)", "95 % (s)", "staleness"))
    for worker, row in fidelity.workers.iterrows():
        workers.add_row(names[worker], *_pairs(row, _WORKER_QUANTITIES))
    links = Table(box=SIMPLE_HEAD)
    _add_pairs(links, "link", ("bytes", "messages", "per second"))
    for link in fidelity.links.index:
        links.add_row("{} to {}".format(*link), *_pairs(fidelity.links.loc[link], _LINK_QUANTITIES))
    tables = (workers, links) if len(fidelity.links) else (workers,)
    return Group(*tables, *map(Text, (*_fidelity_lines(fidelity), f"figure: {figure}")))


def _fidelity_lines(fidelity: Fidelity) -> Iterator[str]:
    """The largest differences, without unknown ones."""
    off = fidelity.verdict
    shown = {
        "median iteration time {:.1%}": "iteration_median",
        "iterations {:.1%}": "iterations",
        "bytes of a link {:.1%}": "bytes",
        **_metric_differences(fidelity.metric),
    }
    shown |= {words: name for words, name in _DELAYS.items() if name in off}
    yield f"worst: {', '.join(words.format(off[name]) for words, name in shown.items() if math.isfinite(off[name]))}"
    if only := int(fidelity.delays.isna().any(axis=1).sum()):
        yield f"{only} losses or returns are in one of the runs only"
    if fidelity.links.empty:
        yield "nothing was exchanged in either run"
    if fidelity.late > 0:
        yield f"real computations took up to {fidelity.late:.1%} longer than modelled"


_DELAYS = {"time to notice a loss {:.1%}": "to_notice", "time to be back {:.1%}": "to_rejoin"}


def _metric_differences(metric: Metric) -> dict[str, str]:
    written, points = ("{:.1f}", " points") if metric == ACCURACY else ("{:.1%}", "")
    return {
        f"{metric.name} {written}{points} at the end": f"{metric.key}_at_end",
        f"on average {written}": f"{metric.key}_on_the_way",
        f"at worst {written}": f"{metric.key}_at_worst",
    }


def _add_pairs(table: Table, first: str, quantities: Sequence[str]) -> None:
    table.add_column(first)
    for quantity in quantities:
        table.add_column(quantity, justify="right")
        table.add_column("ratio", justify="right")


def _pairs(row: pd.Series, quantities: Mapping[str, Callable[[float], str]]) -> list[str]:
    """The real value of each quantity, and its ratio to the simulated one."""
    return [
        cell
        for quantity, written in quantities.items()
        for cell in (_known(row[quantity]["real"], written), _known(row[quantity]["ratio"], "{:.3f}".format))
    ]


def _known(value: float, written: Callable[[float], str]) -> str:
    return written(value) if math.isfinite(value) else "-"


_WORKER_QUANTITIES: Mapping[str, Callable[[float], str]] = {
    "iterations": "{:.0f}".format,
    "iteration_median": "{:.3f}".format,
    "iteration_p95": "{:.3f}".format,
    "staleness": "{:.2f}".format,
}
_LINK_QUANTITIES: Mapping[str, Callable[[float], str]] = {
    "bytes": in_bytes,
    "messages": "{:.0f}".format,
    "throughput": in_bytes,
}
