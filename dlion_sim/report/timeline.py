"""Timelines of workers, with short spans merged so that a page can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlion_sim.analysis.outages import clipped, process_outages
from dlion_sim.analysis.timeline import spans, waited_most_for
from dlion_sim.report.thinning import packed
from dlion_sim.results import Run, participants

WAIT, COMPUTE, BLOCKED, PROFILE, DOWN = range(5)
"""Kinds of spans: waiting for a peer's message, computing, waiting for own messages to leave, profiling, down."""
KINDS = ("waiting for a peer", "computing", "sending blocked", "profiling", "down")
"""Their names."""
_MOST_CELLS, _MOST_COLUMNS = 300_000, 20_000
"""Columns of all timelines together, and of one: spans shorter than a column are merged."""
_TICKS = 2**30
"""The resolution of a run's time."""
_NO_PEER, _MOST_SHORT = -1, 2**15
_OWN_QUEUE = "queue"
_KINDS = {"profile": PROFILE, "compute": COMPUTE, "wait": WAIT}
_COLUMNS: dict[str, Any] = {"worker": "int32", "begin": "f8", "end": "f8", "kind": "uint8", "peer": "int32"}


def timeline(run: Run, metrics: pd.DataFrame, end: float) -> dict[str, Any]:
    """All workers' pieces, in order of workers and then of time.

    `first` is the index of each worker's first piece, and the number of pieces. `begin` and `end` of a piece are in
    ticks, of which `ticks` are the run's `seconds`; `kind` is one of `kinds`, and `peer` the one of its longest wait,
    or -1. Spans shorter than `merged` seconds are merged with their neighbours: `computing` is the share of computing
    in a piece's computing and waiting, from 0 to 200. `spent` has the seconds of each worker and kind.
    """
    names, everyone = run.manifest["workers"], participants(run.manifest)
    of_workers = spans(metrics)
    longest = waited_most_for(of_workers)
    whole = _with_outages(run, of_workers, end)
    columns = min(_MOST_COLUMNS, _MOST_CELLS // max(len(names), 1))
    pieces = _merged(whole, end / columns)
    spent = (whole["end"] - whole["begin"]).groupby([whole["worker"], whole["kind"]]).sum().unstack("kind")
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
        "waits": [
            f"{everyone[longest['peer'][each]]} ({longest['seconds'][each]:.4g} s)" if each in longest.index else None
            for each in range(len(names))
        ],
    }


def _ticks(times: pd.Series, end: float) -> npt.NDArray[np.float64]:
    ticks: npt.NDArray[np.float64] = np.round(times.to_numpy() / end * _TICKS)
    return ticks


def _with_outages(run: Run, spans: pd.DataFrame, end: float) -> pd.DataFrame:
    """The spans and the workers' outages until the run's end: `worker`, `begin` and `end` (s), `kind`, `peer` or -1."""
    workers = len(run.manifest["workers"])
    down = [
        (number, *outage)
        for number, own in process_outages(run).items()
        if number < workers
        for outage in clipped(own, 0.0, end)
    ]
    kind = spans["what"].map(_KINDS).mask(spans["wait_reason"] == _OWN_QUEUE, BLOCKED)
    known = spans.assign(kind=kind, peer=spans["waited_for"].fillna(_NO_PEER))[[*_COLUMNS]]
    outages = pd.DataFrame(down, columns=["worker", "begin", "end"]).assign(kind=DOWN, peer=_NO_PEER)
    table = pd.concat([known, outages]).astype(_COLUMNS)
    return table.sort_values(["worker", "begin"], kind="stable", ignore_index=True)


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
    waits = np.flatnonzero(spans["peer"].to_numpy() != _NO_PEER)
    by_length = waits[np.argsort(length[waits], kind="stable")]
    peers = np.full(count, _NO_PEER, dtype=np.int64)
    peers[piece[by_length]] = spans["peer"].to_numpy()[by_length]  # of several, the last one is kept
    return peers
