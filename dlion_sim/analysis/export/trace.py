"""Runs as trace files, which Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) show.

The format is Google's "Trace Event Format": a list of events, whose times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dlion_sim.analysis.export.folder import new_folder
from dlion_sim.analysis.timeline import sending, spans, transfers
from dlion_sim.results import Run, participants, run_names, scenario_label
from dlion_sim.results.atomic import json_bytes, write

_PROCESS = 1
_MICROSECONDS = 1e6
_MOST_LANES = 10_000
"""Of a worker, for the order of threads."""


def export_trace(runs: tuple[Run, ...], folder: Path) -> None:
    """Write a trace file of each run, named after it, to `folder`, which is new or empty.

    A thread is a worker; its slices are profiling, computing and waiting, and counters beside it tell its batch size,
    its accuracy (or other metric) and what it sends. The threads after it have a slice for each message that it sent,
    from its first byte to its last; those of one thread don't overlap. Raises InputError where a run cannot be read or
    the folder cannot be used.
    """
    new_folder(folder)
    for name, run in zip(run_names([run.folder for run in runs]), runs, strict=True):
        document = {"traceEvents": list(_events(run)), "displayTimeUnit": "ms"}
        write(folder / f"{name.replace('/', '-')}.json", json_bytes(document))


def _events(run: Run) -> Iterator[dict[str, Any]]:
    names, everyone = dict(enumerate(run.manifest["workers"])), dict(enumerate(participants(run.manifest)))
    yield _metadata("process_name", {"name": f"{scenario_label(run.manifest)} · {run.system}"})
    for worker, name in names.items():
        yield from _thread(worker, name, (worker, 0))
    for span in spans(run).to_dict("records"):
        told = {"iteration": span["iteration"]}
        if not pd.isna(span["waited_for"]):
            told |= {"waited for": everyone[int(span["waited_for"])], "reason": span["wait_reason"]}
        yield _slice(span["what"], span["begin"], span["end"], span["worker"], told)
    yield from _transfers(run, everyone)
    for worker, begin, rate in _rows(sending(run), "worker", "begin", "rate"):
        yield _counter(f"sent by {everyone.get(worker, f'server {worker}')} (Mbps)", begin, rate / 1e6)
    for worker, time, size in _rows(run.iterations(), "worker", "virtual_time", "batch_size"):
        yield _counter(f"batch size of {names[worker]}", time, size)
    metric = run.metric
    for worker, time, value in _rows(run.evaluations(), "worker", "virtual_time", metric.key):
        yield _counter(f"{run.evaluated_on} {metric.name} of {names[worker]}{metric.unit}", time, metric.scale * value)


def _transfers(run: Run, everyone: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """A thread for each lane of a sender, and a slice a message."""
    sent = transfers(run)
    lanes = sent[["sender", "lane"]].drop_duplicates().sort_values(["sender", "lane"]).itertuples(index=False)
    threads = {(sender, lane): number for number, (sender, lane) in enumerate(lanes, start=len(everyone))}
    for (sender, lane), thread in threads.items():
        yield from _thread(thread, f"{everyone[sender]} sends", (sender, 1 + lane))
    columns = ("sender", "lane", "receiver", "kind", "channel", "bytes", "begin", "end")
    for sender, lane, receiver, kind, channel, size, begin, end in _rows(sent, *columns):
        told = {"to": everyone[receiver], "channel": channel, "bytes": size}
        yield _slice(f"{kind} to {everyone[receiver]}", begin, end, threads[sender, lane], told)


def _rows(table: Any, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows without gaps, in plain Python's types."""
    known = table.dropna(subset=list(columns))
    return zip(*(known[column].tolist() for column in columns), strict=True)


def _at(time: float, thread: int) -> dict[str, Any]:
    return {"ts": time * _MICROSECONDS, "pid": _PROCESS, "tid": thread}


def _slice(name: str, begin: float, end: float, thread: int, told: Mapping[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "name": name, **_at(begin, thread), "dur": (end - begin) * _MICROSECONDS, "args": told}


def _counter(name: str, time: float, value: float) -> dict[str, Any]:
    return {"ph": "C", "name": name, **_at(time, 0), "args": {"value": value}}


def _thread(number: int, name: str, place: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """What names a thread and says where among the others it stands."""
    yield _metadata("thread_name", {"name": name}, number)
    yield _metadata("thread_sort_index", {"sort_index": _MOST_LANES * place[0] + place[1]}, number)


def _metadata(what: str, told: Mapping[str, Any], thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": thread, "args": told}
