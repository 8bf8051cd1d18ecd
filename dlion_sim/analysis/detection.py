"""Delays of failure detection and rejoining, compared between two runs of one scenario."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dlion_sim.results import Run

_KEY = ["what", "participant", "peer", "time"]
_LEAST_SECONDS = 2.0
"""Differences of shorter delays are relative to this: a tenth of it is the variation of a machine's own times."""


def compare_delays(simulated: Run, real: Run, end: float) -> pd.DataFrame:
    """Delays in seconds, `simulated` and `real`, by what (lost, found, joined), participant, reporting peer (-1:
    itself)
    and number of the repetition.

    "lost" counts from the participant's end, "found" from its loss by the same peer, and "joined" from the start of the
    process. An event of one run only has NaN for the other.
    """
    model, measured = (_delays(run, end) for run in (simulated, real))
    both = model.add_suffix("_simulated").join(measured.add_suffix("_real"), how="outer")
    # A node does not know when a link fell silent, so the delay is the simulated one plus how much later it was.
    later = both["virtual_time_real"] - both["virtual_time_simulated"]
    measured_seconds = both["seconds_real"].fillna(both["seconds_simulated"] + later)
    return pd.DataFrame({"simulated": both["seconds_simulated"], "real": measured_seconds})


def max_difference(delays: pd.DataFrame, *what: str) -> float:
    """The greatest difference of delays of some kinds, relative to the simulated delay or, if longer, two seconds.

    Infinite if an event happened in one run only; NaN without events.
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
    # The sponsors may differ.
    rows = rows.assign(peer=rows["peer"].where(rows["what"] != "joined").fillna(-1).astype(int))
    rows = rows.assign(seconds=rows["seconds"].where(rows["what"] != "found", _since_lost(rows)))
    rows = rows[(rows["what"] != "found") | rows["seconds"].notna()]
    rows = rows.assign(time=rows.groupby(["what", "participant", "peer"]).cumcount())
    return rows.set_index(_KEY)[["virtual_time", "seconds"]].astype(float)


def _since_lost(rows: pd.DataFrame) -> pd.Series:
    """The time from a peer's loss of a participant until it found it again; NaN without a loss."""
    pair = rows.groupby(["participant", "peer"])
    since = rows["virtual_time"] - pair["virtual_time"].shift()
    return since.where(pair["what"].shift() == "lost")
