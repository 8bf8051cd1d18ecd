"""Made-up sweeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from dlion_sim.results import LinksRow, MetricsRow, Run, RunWriter, cost_of
from tests.made_up import made_up_run


def made_up_sweep(
    folder: Path,
    *,
    systems: Sequence[str] = ("baseline", "dlion"),
    bandwidths: Sequence[str] = ("5 Mbps", "20 Mbps", "100 Mbps"),
    seeds: int = 2,
    evaluations: int = 4,
) -> None:
    """Runs of some systems behind some bandwidths: the later in their order, the better; no two come to the same."""
    for rank, system in enumerate(systems):
        for place, bandwidth in enumerate(bandwidths):
            for seed in range(seeds):
                last = 0.5 + 0.1 * rank + 0.05 * place + 0.01 * seed
                made_up_run(
                    folder / f"{system}-{bandwidth.split()[0]}-seed{seed}",
                    [0.1 + (last - 0.1) * number / (evaluations - 1) for number in range(evaluations)],
                    system=system,
                    seed=seed,
                    every=10.0 + 5 * rank,
                    extra=f"bandwidth: {bandwidth}\n",
                    point={"cluster.wan.bandwidth": bandwidth, "system": system},
                )


def begun_run(run: Run, folder: Path, until: float) -> RunWriter:
    """A run in progress that has recorded what another one had until a time (s); it ends as the test says."""
    manifest = {key: value for key, value in run.manifest.items() if key != "status"}
    scenario = (run.folder / "scenario.yaml").read_text() + "duration: 60 s\n"
    writer = RunWriter.create(folder, scenario_yaml=scenario, manifest=manifest)
    go_on(writer, run, 0.0, until)
    return writer


def go_on(writer: RunWriter, run: Run, after: float, until: float) -> None:
    """Record what another run had after one time (s) until another."""
    for table, kind in ((run.metrics(), MetricsRow), (run.links(), LinksRow)):
        lately = table[table["virtual_time"].between(after, until, inclusive="both" if not after else "right")]
        for row in lately[list(kind._fields)].itertuples(index=False):
            writer.append(kind(*(None if pd.isna(value) else value for value in row)))  # type: ignore[operator]
    writer.flush()


def priced_run(folder: Path, **about: object) -> Run:
    """A run whose machines cost 1 an hour each."""
    run = made_up_run(folder, **about)  # type: ignore[arg-type]
    tariff = {"per_hour": [1.0, 1.0], "step": 1.0, "least": 0.0, "egress": None, "watts": None, "carbon": None}
    summary = {**(run.summary or {}), "cost": cost_of(tariff, run.outcome["virtual_seconds"], {})}  # type: ignore[arg-type]
    (folder / "manifest.json").write_text(json.dumps({**run.manifest, "tariff": tariff}))
    (folder / "summary.json").write_text(json.dumps(summary))
    return Run.open(folder)
