"""Timelines of workers: computing, waiting and for which peer, and sending."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from heapq import heappop, heappush

import pandas as pd

from dlion_sim.analysis.traffic import interval_rates
from dlion_sim.results import TESTS, Run

_SPAN_COLUMNS = ["worker", "iteration", "waited_for", "wait_reason"]


def spans(metrics: pd.DataFrame) -> pd.DataFrame:
    """A row for each span of a run's metrics: `worker`, `what` ("profile", "compute" or "wait"), `iteration` (from 1),
    `begin` and `end` (s).

    An iteration computes its gradient, then waits: `waited_for` is the peer and `wait_reason` what the wait was for.
    The end of the run may cut off the last span of a worker. Spans of length 0 are left out.
    """
    rows = metrics[~metrics["kind"].isin(TESTS)]
    end = rows["virtual_time"]
    computed = end - rows["wait_seconds"]
    what = rows["kind"].astype(str).where(rows["kind"] == "profile", "compute")
    compute = rows[_SPAN_COLUMNS].assign(what=what, begin=computed - rows["compute_seconds"], end=computed)
    wait = rows[_SPAN_COLUMNS].assign(what="wait", begin=computed, end=end)
    both = pd.concat([compute.assign(waited_for=None, wait_reason=None), wait[rows["wait_seconds"] > 0]])
    lasting = both[both["end"] > both["begin"]]
    return lasting.sort_values(["worker", "begin"], kind="stable", ignore_index=True)


def waited_most_for(spans: pd.DataFrame) -> pd.DataFrame:
    """By worker: `peer`, the number of the peer that it waited for longest, `seconds` of these waits and their main
    `reason`.

    Without workers that never waited for a peer.
    """
    waits = spans.dropna(subset=["waited_for"]).astype({"waited_for": int})
    waits["seconds"] = waits["end"] - waits["begin"]
    by_reason = waits.groupby(["worker", "waited_for", "wait_reason"], observed=True)["seconds"].sum().reset_index()
    by_reason = by_reason.sort_values("seconds", ascending=False, kind="stable")
    by_peer = by_reason.groupby(["worker", "waited_for"]).agg(
        seconds=("seconds", "sum"), reason=("wait_reason", "first")
    )
    longest = by_peer.reset_index().sort_values("seconds", ascending=False, kind="stable").groupby("worker").head(1)
    return longest.rename(columns={"waited_for": "peer"}).set_index("worker").sort_index()


def sending(run: Run) -> pd.DataFrame:
    """A row for each interval of a sender: `worker`, `begin` and `end` (s), `rate` of sending (bits per second)."""
    links = interval_rates(run).rename(columns={"sender": "worker", "virtual_time": "end"})
    return links.groupby(["worker", "end", "begin"])["rate"].sum().reset_index()


def transfers(run: Run) -> pd.DataFrame:
    """The transfers of a run by begin, with a `lane` (from 0): overlapping transfers of a sender have different lanes.

    A transfer in progress ends when one of its ends is lost, or the run ends. Empty for a run without records.
    """
    sent = run.transfers()
    last = max(run.metrics()["virtual_time"].max(), sent["end"].max()) if len(sent) else 0.0
    cut = sent.loc[sent["end"].isna(), ["begin", "sender", "receiver"]]
    sent["end"] = sent["end"].fillna(_losses(run, cut)).fillna(last)
    sent = sent.sort_values(["begin", "end"], kind="stable", ignore_index=True)
    return sent.assign(lane=_lanes(sent))


def _losses(run: Run, sent: pd.DataFrame) -> pd.Series:
    """For each message the first time (s) after its begin at which an end went down or was lost by the other end."""
    times: defaultdict[frozenset[int], list[float]] = defaultdict(list)
    membership = run.membership().sort_values("virtual_time", kind="stable")
    for time, what, *pair in membership[["virtual_time", "what", "participant", "peer"]].itertuples(index=False):
        if what in ("down", "left", "lost"):
            times[frozenset(pair if what == "lost" else pair[:1])].append(time)

    def first(begin: float, *ends: int) -> float:
        of_ends = (times.get(frozenset(each), ()) for each in (ends[:1], ends[1:], ends))
        return min((own[place] for own in of_ends if (place := bisect_left(own, begin)) < len(own)), default=math.nan)

    return pd.Series([first(*each) for each in sent.itertuples(index=False)], index=sent.index, dtype=float)


def _lanes(sent: pd.DataFrame) -> list[int]:
    """The lowest free lane for each transfer in turn."""
    busy: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    free: defaultdict[int, list[int]] = defaultdict(list)
    lanes = []
    for sender, begin, end in zip(sent["sender"].tolist(), sent["begin"].tolist(), sent["end"].tolist(), strict=True):
        under_way, left = busy[sender], free[sender]
        while under_way and under_way[0][0] <= begin:
            heappush(left, heappop(under_way)[1])
        lanes.append(heappop(left) if left else len(under_way))
        heappush(under_way, (end, lanes[-1]))
    return lanes
