"""What is measured of a machine becomes a block that a simulation takes as long by as the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
ALPHA, SLOPE = 0.0123, 0.00045
"""Of the machine that is made up."""


class MadeUpMachine:
    """In the place of the clock and the executor: a gradient takes as long as is made up."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sizes: list[int] = []
        self.slow = 0
        """How many gradients from now on take ten times as long."""

    def clock(self) -> float:
        return self.now

    @contextmanager
    def open(self, *_: object, **__: object) -> Iterator[MadeUpMachine]:
        yield self

    def submit(self, replica: object, samples: list[int]) -> int:
        return len(samples)

    def result(self, size: int) -> None:
        self.now += (ALPHA + SLOPE * size) * (10 if self.slow > 0 else 1)
        self.slow -= 1
        self.sizes.append(size)

    def close(self) -> None:
        pass


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> MadeUpMachine:
    here = MadeUpMachine()
    monkeypatch.setattr(machine, "gradient_executor", lambda *_, **__: here)
    return here


@pytest.fixture(scope="module")
def setting() -> Setting:
    return Setting.of(from_data(SCENARIO))


def test_sizes_are_timed_in_turn_after_warming_up(made_up: MadeUpMachine, setting: Setting) -> None:
    times = machine.time_gradients(setting, [8, 16], made_up.clock)
    assert made_up.sizes[:8] == [8, 8, 16, 16, 8, 16, 8, 16]
    assert len(times[8]) == len(times[16]) >= 9
    assert times[16] == pytest.approx([ALPHA + SLOPE * 16] * len(times[16]))


def test_what_takes_long_is_timed_three_times(made_up: MadeUpMachine, setting: Setting) -> None:
    made_up.slow = 10**6
    assert len(machine.time_gradients(setting, [10**5], made_up.clock)[10**5]) == 3


def test_a_busy_moment_changes_no_median(made_up: MadeUpMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up.slow = 30
    real = machine.time_gradients
    monkeypatch.setattr(machine, "time_gradients", lambda setting, sizes: real(setting, sizes, made_up.clock))
    result = calibrate(from_data(SCENARIO), "cpu")
    assert result.fit.alpha == pytest.approx(ALPHA)
    assert result.fit.slope == pytest.approx(SLOPE)
    assert list(result.seconds) == [8, 16, 32, 64, 128]


@pytest.mark.parametrize("compute_time", [{}, {"alpha": "1 s", "beta": "40 ms"}])
def test_a_simulation_with_the_block_takes_as_long_as_the_machine(tmp_path: Path, compute_time: dict) -> None:
    workload = {**SCENARIO["workload"], "compute_time": compute_time}
    setting = Setting.of(from_data({**SCENARIO, "workload": workload}))
    result = machine.calibration(setting, {size: ALPHA + SLOPE * size for size in (8, 32, 128)})
    for size in (8, 50, 128):
        block = {**SCENARIO, **result.block, "workload": {**result.block["workload"], "batch_size": size}}
        run = simulate(from_data(block), tmp_path / str(size))
        assert run.iterations()["compute_seconds"].tolist() == pytest.approx([ALPHA + SLOPE * size] * 3, rel=1e-3)
    if compute_time:  # what a sample takes on a core stays as it is stated; the machine is worth more or fewer
        assert result.block["workload"]["compute_time"]["beta"] == "40 ms"
        assert result.cores == pytest.approx(0.04 / SLOPE, rel=1e-3)


def test_real_gradients_have_times(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_SECONDS", 0.0)
    times = machine.time_gradients(setting, [4, 8])
    assert [len(each) for each in times.values()] == [9, 9]
    assert min(map(min, times.values())) > 0
