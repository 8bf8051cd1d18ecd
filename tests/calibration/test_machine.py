"""What is measured of a machine becomes a block that a simulation takes as long by as the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlion_sim.assembly import Setting
from dlion_sim.calibration import calibrate, machine
from dlion_sim.scenario import from_data
from dlion_sim.simulation import simulate

SCENARIO = {
    "name": "measured",
    "iterations": 3,
    "workload": {"dataset": "digits", "model": "mlp", "evaluate_every": "10 s"},
    "cluster": {"clouds": [{"name": "here", "workers": [{"count": 2}]}]},
    "system": "baseline",
}
ALPHA, SLOPE, MESSAGE = 0.0123, 0.00045, 0.002
"""Of the machine that is made up."""


@pytest.fixture(scope="module")
def setting() -> Setting:
    return Setting.of(from_data(SCENARIO))


def test_a_busy_moment_changes_no_median(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = [10.0, 1.0, 1.0, 1.0, 10.0]
    sizes_timed = []

    def made_up(setting: Setting, sizes: list[int]) -> dict[int, list[float]]:
        assert setting.workers == 1, "however many the scenario has"
        sizes_timed.extend(sizes)
        return {size: [(ALPHA + SLOPE * size) * slower for slower in busy] for size in sizes}

    monkeypatch.setattr(machine, "time_iterations", made_up)
    monkeypatch.setattr(machine, "time_messages", lambda *_: MESSAGE)
    result = calibrate(from_data(SCENARIO), "cpu")
    assert result.fit.alpha == pytest.approx(ALPHA)
    assert result.fit.slope == pytest.approx(SLOPE)
    assert sizes_timed == [*result.seconds] == [8, 16, 32, 64, 128]


def test_the_line_goes_through_the_workloads_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As what a run of it takes is to be told, wherever other sizes lie."""
    bent = {8: 0.010, 16: 0.012, 32: 0.019, 64: 0.031, 128: 0.070}
    monkeypatch.setattr(machine, "time_iterations", lambda setting, sizes: {size: [bent[size]] for size in sizes})
    monkeypatch.setattr(machine, "time_messages", lambda *_: MESSAGE)
    result = calibrate(from_data(SCENARIO), "cpu")
    assert result.fit.seconds(32) == pytest.approx(bent[32], rel=1e-4)
    assert result.fit.worst > 0.1


@pytest.mark.parametrize("compute_time", [{}, {"alpha": "1 s", "beta": "40 ms"}])
def test_a_simulation_with_the_block_takes_as_long_as_the_machine(tmp_path: Path, compute_time: dict) -> None:
    workload = {**SCENARIO["workload"], "compute_time": compute_time}
    setting = Setting.of(from_data({**SCENARIO, "workload": workload}))
    result = machine.calibration(setting, {size: ALPHA + SLOPE * size for size in (8, 32, 128)}, MESSAGE)
    for size in (8, 50, 128):
        block = {**SCENARIO, **result.block, "workload": {**result.block["workload"], "batch_size": size}}
        run = simulate(from_data(block), tmp_path / str(size))
        assert run.iterations()["compute_seconds"].tolist() == pytest.approx([ALPHA + SLOPE * size] * 3, rel=1e-3)
    assert result.block["workload"]["compute_time"]["per_message"] == "2 ms"
    if compute_time:  # what a sample takes on a core stays as it is stated; the machine is worth more or fewer
        assert result.block["workload"]["compute_time"]["beta"] == "40 ms"
        assert result.cores == pytest.approx(0.04 / SLOPE, rel=1e-3)
