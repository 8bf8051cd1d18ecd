"""Timelines of workers, with short spans merged so that a page can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlion_sim.analysis.outages import process_outages
from dlion_sim.report.thinning import packed
from dlion_sim.results import TESTS, Run, participants

WAIT, COMPUTE, BLOCKED, PROFILE, DOWN = range(5)
"""Kinds of spans: waiting for a peer's message, computing, waiting for own messages to leave, profiling, down."""
KINDS = ("waiting for a peer", "computing", "sending blocked", "profiling", "down")
"""Their names."""
_MOST_CELLS, _MOST_COLUMNS = 300_000, 20_000
"""Columns of all timelines together, and of one: spans shorter than a column are merged."""
_TICKS = 2**30
"""The resolution of a run's time."""
_NOBODY, _MOST_SHORT = -1, 2**15
_OWN_QUEUE = "queue"


def timeline(run: Run, metrics: pd.DataFrame, end: float) -> dict[str, Any]:
    """All workers' pieces, in order of workers and then of time.

    `first` is the index of each worker's first piece, and the number of pieces. `begin` and `end` of a piece are in
    ticks, of which `ticks` are the run's `seconds`; `kind` is one of `kinds`, and `peer` the one of its longest wait,
    or -1. Spans shorter than `merged` seconds are merged with their neighbours: `computing` is the share of computing
    in a piece's computing and waiting, from 0 to 200. `spent` has the seconds of each worker and kind.
    """
    names, everyone = run.manifest["workers"], participants(run.manifest)
    spans = _spans(run, metrics, end)
    columns = min(_MOST_COLUMNS, _MOST_CELLS // max(len(names), 1))
    pieces = _merged(spans, end / columns)
    spans["length"] = spans["end"] - spans["begin"]
    spent = spans.groupby(["worker", "kind"])["length"].sum().unstack("kind")
    spent = spent.reindex(index=range(len(names)), columns=range(len(KINDS))).fillna(0.0)
    return {
        "workers": names,
        "everyone": everyone,
        "kinds": list(KINDS),
        "seconds": end,
        "ticks": _TICKS,
        "merged": end / columns,
        "first": np.searchsorted(pieces["worker"], np.arange(len(names) + 1)).tolist(),
        "begin": packed(_ticks(pieces["begin"], end), "i4"),
        "end": packed(_ticks(pieces["end"], end), "i4"),
        "kind": packed(pieces["kind"], "u1"),
        "peer": packed(pieces["peer"], "i2" if len(everyone) < _MOST_SHORT else "i4"),
        "computing": packed(np.round(200 * pieces["computing"]), "u1"),
        "spent": [packed(row) for row in spent.to_numpy()],
        "waits": _waited_most_for(spans, everyone, len(names)),
    }


def _ticks(times: pd.Series, end: float) -> npt.NDArray[np.float64]:
    ticks: npt.NDArray[np.float64] = np.round(times.to_numpy() / end * _TICKS)
    return ticks


def _spans(run: Run, metrics: pd.DataFrame, end: float) -> pd.DataFrame:
    """A row for each span longer than 0: `worker`, `begin` and `end` (s), `kind`, `peer` or -1; by worker and time."""
    rows = metrics[~metrics["kind"].isin(TESTS)]
    worker, ends = rows["worker"].to_numpy(), rows["virtual_time"].to_numpy()
    ready = ends - rows["wait_seconds"].fillna(0.0).to_numpy()
    begins = ready - rows["compute_seconds"].fillna(0.0).to_numpy()
    is_blocked = (rows["wait_reason"] == _OWN_QUEUE).to_numpy()
    of_compute = np.where(rows["kind"] == "profile", PROFILE, COMPUTE)
    peers = rows["waited_for"].fillna(_NOBODY).to_numpy()
    nobody = np.full(len(rows), _NOBODY)
    rows_down = [
        (number, begin, min(until, end))
        for number, own in process_outages(run).items()
        if number < len(run.manifest["workers"])
        for begin, until in own
    ]
    down = pd.DataFrame(rows_down, columns=["worker", "begin", "end"], dtype=float)
    parts = {
        "worker": [worker, worker, down["worker"]],
        "begin": [begins, ready, down["begin"]],
        "end": [ready, ends, down["end"]],
        "kind": [of_compute, np.where(is_blocked, BLOCKED, WAIT), np.full(len(down), DOWN)],
        "peer": [nobody, peers, np.full(len(down), _NOBODY)],
    }
    table = pd.DataFrame({name: np.concatenate(columns) for name, columns in parts.items()})
    table = table.astype({"worker": "int32", "kind": "uint8", "peer": "int32"})
    lasting = table[table["end"] > table["begin"]]
    return lasting.iloc[np.lexsort((lasting["begin"], lasting["worker"]))].reset_index(drop=True)


def _merged(spans: pd.DataFrame, least: float) -> pd.DataFrame:
    """The spans as pieces: neighbours that begin in the same `least` seconds and are shorter are merged.

    A piece has the kind that takes most of it, computing and waiting together; `computing` is the share of computing in
    these two.
    """
    length = (spans["end"] - spans["begin"]).to_numpy()
    column = (spans["begin"].to_numpy() / least).astype(np.int64)
    short = length < least
    begins = np.ones(len(spans), dtype=bool)
    worker = spans["worker"].to_numpy()
    begins[1:] = ~(short[1:] & short[:-1] & (column[1:] == column[:-1]) & (worker[1:] == worker[:-1]))
    piece = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    count = len(first)
    seconds = np.zeros((count, len(KINDS)))
    np.add.at(seconds, (piece, spans["kind"].to_numpy()), length)
    both = seconds[:, [WAIT, COMPUTE]].sum(axis=1)
    together = seconds.copy()
    together[:, [WAIT, COMPUTE]] = 0.0
    together[np.arange(count), np.where(seconds[:, WAIT] > seconds[:, COMPUTE], WAIT, COMPUTE)] = both
    last = np.append(first, len(spans))[1:] - 1
    return pd.DataFrame(
        {
            "worker": worker[first],
            "begin": spans["begin"].to_numpy()[first],
            "end": spans["end"].to_numpy()[last],
            "kind": together.argmax(axis=1),
            "peer": _peers(spans, piece, count),
            "computing": np.divide(seconds[:, COMPUTE], both, out=np.zeros(count), where=both > 0),
        }
    )


def _peers(spans: pd.DataFrame, piece: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.int64]:
    """The peer of the longest wait in each piece, or -1."""
    length = (spans["end"] - spans["begin"]).to_numpy()
    waits = np.flatnonzero(spans["peer"].to_numpy() != _NOBODY)
    by_length = waits[np.argsort(length[waits], kind="stable")]
    peers = np.full(count, _NOBODY, dtype=np.int64)
    peers[piece[by_length]] = spans["peer"].to_numpy()[by_length]  # of several, the last one is kept
    return peers


def _waited_most_for(spans: pd.DataFrame, everyone: list[str], workers: int) -> list[str | None]:
    """The peer that each worker waited for longest, and the seconds."""
    waits = spans[spans["peer"] != _NOBODY]
    sums = waits.groupby(["worker", "peer"])["length"].sum().reset_index()
    longest = sums.sort_values("length", ascending=False, kind="stable").drop_duplicates("worker").set_index("worker")
    texts: dict[int, str] = {
        int(str(worker)): f"{everyone[int(row['peer'])]} ({row['length']:.4g} s)" for worker, row in longest.iterrows()
    }
    return [texts.get(worker) for worker in range(workers)]
