"""A base scenario and sweeps of it, as files."""

from __future__ import annotations

from pathlib import Path

import yaml

from dlion_sim.scenario import dump
from tests.simulation.scenarios import digits


def write_sweep(folder: Path, *overrides: str, **keys: object) -> Path:
    """A sweep of the small digits scenario; `keys` are the sweep's, `overrides` of the scenario."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "base.yaml").write_text(dump(digits("duration=1 s", "workload.evaluate_every=1 s", *overrides)))
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump({"base": "base.yaml", **keys}, sort_keys=False))
    return file
