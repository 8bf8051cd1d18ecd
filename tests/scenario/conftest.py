"""A small scenario, as text and as data, for the tests to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dlion_sim.scenario import Scenario, load
from dlion_sim.scenario.overrides import overridden
from dlion_sim.yaml_text import write_yaml

EXAMPLE = """\
name: two-clouds
seed: 1
duration: 300 s
workload:
  {dataset: digits, model: mlp, optimizer: {kind: sgd, learning_rate: 0.05}, batch_size: 32, evaluate_every: 10 s}
cluster:
  clouds:
    - {name: east, workers: [{count: 3, compute: 24 cores, nic: 50 Mbps}]}
    - {name: west, workers: [{count: 1, compute: 4 cores, nic: 20 Mbps}]}
  wan: {bandwidth: 40 Mbps, rtt: 60 ms}
system: dlion            # or {name: dlion, exchange: {n_min: 10}, knowledge_transfer: none}
"""


@pytest.fixture
def data() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(EXAMPLE)
    return data


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "example.yaml"
    path.write_text(EXAMPLE)
    return path


def written(file: Path, *overrides: str) -> Scenario:
    """The scenario of the file, once that says itself what would be overrides."""
    data = yaml.safe_load(file.read_text())
    file.write_text(write_yaml(overridden(data, overrides)))
    return load(file)
