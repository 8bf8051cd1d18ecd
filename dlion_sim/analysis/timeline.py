"""What each worker did when: spans of computing and waiting, and what it sent in each interval."""

from __future__ import annotations

import pandas as pd

from dlion_sim.results import Run


def spans(run: Run) -> pd.DataFrame:
    """A row a span: `worker`, `what` ("compute" or "wait"), `iteration` (from 1 on), `begin` and `end` (s).

    An iteration computes its gradient, then waits until it may go on; waits of no time have no row.
    """
    iterations = run.iterations()
    end = iterations["virtual_time"]
    computed = end - iterations["wait_seconds"]
    of = iterations[["worker", "iteration"]]
    compute = of.assign(what="compute", begin=computed - iterations["compute_seconds"], end=computed)
    wait = of.assign(what="wait", begin=computed, end=end)
    both = pd.concat([compute, wait[iterations["wait_seconds"] > 0]])
    return both.sort_values(["worker", "begin"], kind="stable", ignore_index=True)


def sending(run: Run) -> pd.DataFrame:
    """A row an interval of a sender: `worker`, `begin` and `end` (s), `rate`, what it sent (bits per second)."""
    links = run.links()
    ends = sorted({*links["virtual_time"], *run.evaluations()["virtual_time"]})
    begins = dict(zip(ends, [0.0, *ends], strict=False))
    sent = links.groupby(["sender", "virtual_time"], as_index=False)["bytes"].sum()
    begin = sent["virtual_time"].map(begins).astype(float)
    return pd.DataFrame(
        {
            "worker": sent["sender"],
            "begin": begin,
            "end": sent["virtual_time"],
            "rate": 8 * sent["bytes"] / (sent["virtual_time"] - begin),
        }
    )
