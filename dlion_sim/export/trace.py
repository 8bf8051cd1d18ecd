"""Runs as trace files, which Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) show.

The format is Google's "Trace Event Format": a list of events, whose times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dlion_sim.analysis.timeline import sending, spans
from dlion_sim.export.folder import new_folder
from dlion_sim.results import Run, run_names
from dlion_sim.results.atomic import json_bytes, write

_PROCESS = 1
_MICROSECONDS = 1e6


def export_trace(runs: tuple[Run, ...], folder: Path) -> None:
    """Write a trace file of each run, named after it, to `folder`, which is new or empty.

    A thread is a worker; its slices are computing and waiting, and counters beside it tell its batch size, its accuracy
    and what it sends. Raises InputError where a run cannot be read or the folder cannot be used.
    """
    new_folder(folder)
    for name, run in zip(run_names([run.folder for run in runs]), runs, strict=True):
        document = {"traceEvents": list(_events(run)), "displayTimeUnit": "ms"}
        write(folder / f"{name.replace('/', '-')}.json", json_bytes(document))


def _events(run: Run) -> Iterator[dict[str, Any]]:
    names = dict(enumerate(run.manifest["workers"]))
    yield _metadata("process_name", f"{run.manifest['scenario']} · {run.system}")
    for worker, name in names.items():
        yield _metadata("thread_name", name, thread=worker)
    for worker, what, iteration, begin, end in _rows(spans(run), "worker", "what", "iteration", "begin", "end"):
        slice_ = {"dur": (end - begin) * _MICROSECONDS, "args": {"iteration": iteration}}
        yield {"ph": "X", "name": what, **_at(begin, worker), **slice_}
    for worker, begin, rate in _rows(sending(run), "worker", "begin", "rate"):
        yield _counter(f"sent by {names.get(worker, f'server {worker}')} (Mbps)", begin, rate / 1e6)
    for worker, time, size in _rows(run.iterations(), "worker", "virtual_time", "batch_size"):
        yield _counter(f"batch size of {names[worker]}", time, size)
    for worker, time, accuracy in _rows(run.evaluations(), "worker", "virtual_time", "accuracy"):
        yield _counter(f"{run.evaluated_on} accuracy of {names[worker]} (%)", time, 100 * accuracy)


def _rows(table: Any, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows without gaps, in plain Python's types."""
    known = table.dropna(subset=list(columns))
    return zip(*(known[column].tolist() for column in columns), strict=True)


def _at(time: float, thread: int) -> dict[str, Any]:
    return {"ts": time * _MICROSECONDS, "pid": _PROCESS, "tid": thread}


def _counter(name: str, time: float, value: float) -> dict[str, Any]:
    return {"ph": "C", "name": name, **_at(time, 0), "args": {"value": value}}


def _metadata(what: str, name: str, thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": thread, "args": {"name": name}}
