"""Exports of runs: CSV tables, TensorBoard event files, and trace files.

Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) show the trace files. Their format is Google's "Trace Event
Format": a list of events with times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dlion_sim.analysis.timeline import sending, spans, transfers
from dlion_sim.errors import InputError
from dlion_sim.results import Frames, Run, participants, run_names, scenario_label
from dlion_sim.results.atomic import json_bytes, naming, write

_ITERATION_COLUMNS = ("loss", "batch_size", "staleness", "compute_seconds", "wait_seconds")
_PROCESS = 1
_MICROSECONDS = 1e6
_MAX_LANES = 10_000
"""Lanes of one worker, for the order of threads."""


def export_csv(runs: tuple[Run, ...], folder: Path) -> None:
    """Write each table of `Frames` as a CSV file, the summaries as runs.csv, to a new or empty folder.

    Tables that not every run has (parts, queues, membership, arrivals, classes) are written unless they are empty.
    Raises InputError if a run cannot be read or the folder cannot be used.
    """
    _new_folder(folder)
    frames = Frames(runs)
    optional = {name: getattr(frames, name) for name in ("parts", "queues", "membership", "arrivals", "classes")}
    tables: dict[str, pd.DataFrame] = {
        "runs": frames.summaries,
        "evaluations": frames.evaluations,
        "iterations": frames.iterations,
        "links": frames.links,
        "transfers": frames.transfers,
        **{name: table for name, table in optional.items() if len(table)},
    }
    for name, table in tables.items():
        file = folder / f"{name}.csv"
        with naming(file):
            table.to_csv(file, index=False)


def export_tensorboard(runs: tuple[Run, ...], folder: Path) -> None:
    """Write the event files of each run to a folder of its name in `folder`, which is new or empty.

    Scalars are named quantity/worker, and accuracy/mean (or the name of another metric); metrics on validation samples
    are named validation_accuracy. Steps are iterations; "wall" times are those of the run's clock, in seconds. Raises
    InputError if the package `tensorboard` is missing, a run cannot be read or the folder cannot be used.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "event files need the package tensorboard", allowed="pip install 'dlion-sim[tensorboard]'"
        ) from None

    _new_folder(folder)
    for name, run in zip(run_names([run.folder for run in runs]), runs, strict=True):
        names = [name.replace("/", "-") for name in participants(run.manifest)]
        metric = run.metric.name if run.evaluated_on == "test" else f"{run.evaluated_on}_{run.metric.name}"
        evaluations = run.evaluations()
        evaluations[metric] = evaluations[run.metric.key]
        iterations = run.iterations()
        means = evaluations.groupby("virtual_time", as_index=False)[["iteration", metric]].mean()
        with SummaryWriter(str(folder / name)) as writer:
            for time, step, value in means[["virtual_time", "iteration", metric]].to_numpy().tolist():
                writer.add_scalar(f"{metric}/mean", value, round(step), walltime=time)
            for table, columns in ((evaluations, (metric,)), (iterations, _ITERATION_COLUMNS)):
                for column in columns:
                    rows = table.dropna(subset=column)[["worker", "iteration", "virtual_time", column]]
                    for worker, step, time, value in rows.to_numpy().tolist():
                        writer.add_scalar(f"{column}/{names[int(worker)]}", value, round(step), walltime=time)


def export_trace(runs: tuple[Run, ...], folder: Path) -> None:
    """Write a trace file of each run, named after it, to `folder`, which is new or empty.

    A thread is a worker; its slices are profiling, computing and waiting. Counters show its batch size, its accuracy
    (or other metric) and its sending rate. Further threads of a worker have a slice for each message that it sent, from
    the first byte to the last; slices of one thread don't overlap. Raises InputError if a run cannot be read or the
    folder cannot be used.
    """
    _new_folder(folder)
    for name, run in zip(run_names([run.folder for run in runs]), runs, strict=True):
        document = {"traceEvents": list(_events(run)), "displayTimeUnit": "ms"}
        write(folder / f"{name.replace('/', '-')}.json", json_bytes(document))


def _new_folder(folder: Path) -> None:
    """Make `folder`, or use it if it is empty. Raises InputError for any other."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError("is not empty", file=folder, allowed="a new or empty folder")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=folder) from error


def _events(run: Run) -> Iterator[dict[str, Any]]:
    workers, names = run.manifest["workers"], participants(run.manifest)
    yield _metadata("process_name", {"name": f"{scenario_label(run.manifest)} · {run.system}"})
    for worker, name in enumerate(workers):
        yield from _thread(worker, name, (worker, 0))
    for span in spans(run.metrics()).to_dict("records"):
        arguments = {"iteration": span["iteration"]}
        if not pd.isna(span["waited_for"]):
            arguments |= {"waited for": names[int(span["waited_for"])], "reason": span["wait_reason"]}
        yield _slice(span["what"], span["begin"], span["end"], span["worker"], arguments)
    yield from _transfers(run, names)
    for worker, begin, rate in _rows(sending(run), "worker", "begin", "rate"):
        sender = names[worker] if worker < len(names) else f"server {worker}"
        yield _counter(f"sent by {sender} (Mbps)", begin, rate / 1e6)
    for worker, time, size in _rows(run.iterations(), "worker", "virtual_time", "batch_size"):
        yield _counter(f"batch size of {workers[worker]}", time, size)
    metric = run.metric
    for worker, time, value in _rows(run.evaluations(), "worker", "virtual_time", metric.key):
        name = f"{run.evaluated_on} {metric.name} of {names[worker]}{metric.unit}"
        yield _counter(name, time, metric.scale * value)


def _transfers(run: Run, names: list[str]) -> Iterator[dict[str, Any]]:
    """A thread for each lane of a sender, and a slice for each message."""
    sent = transfers(run)
    lanes = sent[["sender", "lane"]].drop_duplicates().sort_values(["sender", "lane"]).itertuples(index=False)
    threads = {(sender, lane): number for number, (sender, lane) in enumerate(lanes, start=len(names))}
    for (sender, lane), thread in threads.items():
        yield from _thread(thread, f"{names[sender]} sends", (sender, 1 + lane))
    columns = ("sender", "lane", "receiver", "kind", "channel", "bytes", "begin", "end")
    for sender, lane, receiver, kind, channel, size, begin, end in _rows(sent, *columns):
        arguments = {"to": names[receiver], "channel": channel, "bytes": size}
        yield _slice(f"{kind} to {names[receiver]}", begin, end, threads[sender, lane], arguments)


def _rows(table: Any, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows without missing values, as plain Python types."""
    known = table.dropna(subset=list(columns))
    return zip(*(known[column].tolist() for column in columns), strict=True)


def _at(time: float, thread: int) -> dict[str, Any]:
    return {"ts": time * _MICROSECONDS, "pid": _PROCESS, "tid": thread}


def _slice(name: str, begin: float, end: float, thread: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "name": name, **_at(begin, thread), "dur": (end - begin) * _MICROSECONDS, "args": arguments}


def _counter(name: str, time: float, value: float) -> dict[str, Any]:
    return {"ph": "C", "name": name, **_at(time, 0), "args": {"value": value}}


def _thread(number: int, name: str, place: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """The name of a thread, and its place in the order of threads."""
    yield _metadata("thread_name", {"name": name}, number)
    yield _metadata("thread_sort_index", {"sort_index": _MAX_LANES * place[0] + place[1]}, number)


def _metadata(what: str, arguments: Mapping[str, Any], thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": thread, "args": arguments}
