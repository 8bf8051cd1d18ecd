"""How long it took two runs of one scenario to notice who went, and to have who came back take part."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dlion_sim.results import Run

_KEY = ["what", "participant", "peer", "time"]
_LEAST_SECONDS = 2.0
"""Differences of what takes less are relative to this: a tenth of it is what a machine's own times come to."""


def compare_delays(simulated: Run, real: Run, end: float) -> pd.DataFrame:
    """How many seconds it took, `simulated` and `real`: by what (lost, found, joined), participant, peer who tells (-1:
    itself) and how many times it was so before.

    Being lost counts from the participant's end, being found by who has lost it from that loss, and joining from the
    start of the process. NaN is what happened in one of the runs alone.
    """
    model, measured = (_delays(run, end) for run in (simulated, real))
    both = model.add_suffix("_simulated").join(measured.add_suffix("_real"), how="outer")
    # A node does not know since when nothing comes over a link: but how much later than simulated it was.
    later = both["virtual_time_real"] - both["virtual_time_simulated"]
    measured_seconds = both["seconds_real"].fillna(both["seconds_simulated"] + later)
    return pd.DataFrame({"simulated": both["seconds_simulated"], "real": measured_seconds})


def furthest_apart(delays: pd.DataFrame, *what: str) -> float:
    """The greatest difference of those of that kind, relative to what was simulated, or to two seconds if that is more.

    Infinite where something happened in one run alone; NaN where nothing did.
    """
    of_kind = delays[delays.index.get_level_values("what").isin(what)]
    apart = (of_kind["real"] - of_kind["simulated"]).abs() / of_kind["simulated"].clip(lower=_LEAST_SECONDS)
    return float(apart.fillna(np.inf).max())


def _delays(run: Run, end: float) -> pd.DataFrame:
    """`virtual_time` and `seconds` of each (what, participant, peer, number)."""
    rows = run.membership()
    rows = rows[rows["virtual_time"] <= end].sort_values("virtual_time", kind="stable")
    rows = rows.assign(what=rows["what"].astype(str).replace("begins_anew", "joined"))
    rows = rows[rows["what"].isin(["lost", "found", "joined"])]
    # From whom the state came may differ.
    rows = rows.assign(peer=rows["peer"].where(rows["what"] != "joined").fillna(-1).astype(int))
    rows = rows.assign(seconds=rows["seconds"].where(rows["what"] != "found", _since_lost(rows)))
    rows = rows[(rows["what"] != "found") | rows["seconds"].notna()]
    rows = rows.assign(time=rows.groupby(["what", "participant", "peer"]).cumcount())
    return rows.set_index(_KEY)[["virtual_time", "seconds"]].astype(float)


def _since_lost(rows: pd.DataFrame) -> pd.Series:
    """Of whom a peer has found: how long before it had lost it; NaN where it never had."""
    pair = rows.groupby(["participant", "peer"])
    since = rows["virtual_time"] - pair["virtual_time"].shift()
    return since.where(pair["what"].shift() == "lost")
