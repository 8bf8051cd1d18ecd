"""Completion times of messages and shares of missing bytes, by kind, variable and class of packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlion_sim.results import Run

LARGE, SMALL = "large", "small"
"""Packets of a variable's larger entries, and others."""
_SHARES = {"lost": "lost_bytes", "resent": "resent_bytes", "saved": "saved_bytes"}


def completions(run: Run) -> pd.DataFrame:
    """A row for each completed data message: columns as the transfers, and `seconds` from its first byte on.

    A message sent in packets is complete when its receiver has all that it waits for; others when their last byte has
    been sent.
    """
    sent = run.transfers()
    sent = sent.assign(seconds=sent["delivered"].fillna(sent["end"]) - sent["begin"])
    return sent[(sent["channel"] == "data") & sent["seconds"].notna()].reset_index(drop=True)


def by_kind(run: Run) -> pd.DataFrame:
    """A row for each kind of data message sent in packets: `messages`, shares of bytes, `mean`, `p50`, `p99` (s).

    `lost` is the share that receivers did without, `saved` the part of it that was not sent as they had enough;
    `resent` may be more than 1.
    """
    sent = completions(run).dropna(subset=["lost_bytes"])
    rows: dict[str, dict[str, float]] = {}
    for kind, each in sent.groupby("kind", observed=True):
        whole = max((each["bytes"] + each["saved_bytes"]).sum(), 1)
        shares = {name: each[column].sum() / whole for name, column in _SHARES.items()}
        rows[str(kind)] = {"messages": len(each), **shares, **percentiles(each["seconds"])}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["messages", *_SHARES, *percentiles([])])


def by_part(runs: Sequence[Run]) -> pd.DataFrame:
    """Parts of some runs' messages: a row for each `stage`, `variable` and `packets` (large or small).

    `lost` is the share of their bytes that receivers did without; `mean`, `p50` and `p99` (s) are the times from the
    message's first byte until a part was complete, NaN if unknown.
    """
    parts = pd.concat([run.parts() for run in runs], ignore_index=True)
    stage = parts["stage"].astype(object).where(parts["stage"].notna(), "")
    packets = np.where(parts["large"].astype(bool), LARGE, SMALL)
    rows = []
    for (own_stage, variable, kind), each in parts.assign(stage=stage, packets=packets).groupby(
        ["stage", "variable", "packets"]
    ):
        lost = each["lost_bytes"].sum() / max(each["bytes"].sum(), 1)
        row: dict[str, Any] = {"stage": own_stage, "variable": variable, "packets": kind, "lost": lost}
        rows.append({**row, **percentiles(each["seconds"].dropna())})
    return pd.DataFrame(rows, columns=["stage", "variable", "packets", "lost", *percentiles([])])


def percentiles(seconds: npt.ArrayLike) -> dict[str, float]:
    """The `mean`, median (`p50`) and 99th percentile (`p99`); NaN without values."""
    values = np.asarray(seconds, np.float64)
    if not values.size:
        return dict.fromkeys(("mean", "p50", "p99"), np.nan)
    p50, p99 = np.percentile(values, [50, 99])
    return {"mean": float(values.mean()), "p50": float(p50), "p99": float(p99)}
