"""Iterations are timed as a live node does them, whole, and sizes take turns."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from dlion_sim.assembly import Setting
from dlion_sim.calibration import iterations
from dlion_sim.calibration.iterations import _Stopwatch, alone, time_iterations
from dlion_sim.learning import BatchSampler
from dlion_sim.protocol.events import Report
from dlion_sim.results import RunWriter
from tests.simulation.scenarios import digits


@pytest.fixture(scope="module")
def setting() -> Setting:
    return Setting.of(alone(digits()))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterations, "_ROUNDS", 1)
    monkeypatch.setattr(iterations, "_SECONDS", 0.0)


class MadeUpExecutor:
    """A gradient of b samples takes a quarter of a millisecond each."""

    def __init__(self, parameters: int) -> None:
        self._gradient = torch.zeros(parameters)
        self.sizes: list[int] = []

    def submit(self, replica: object, samples: list[int]) -> int:
        return len(samples)

    def result(self, size: int) -> tuple[float, torch.Tensor]:
        self.sizes.append(size)
        time.sleep(size * 0.25e-3)
        return 1.0, self._gradient.clone()

    def close(self) -> None:
        pass


def test_all_of_an_iteration_counts(setting: Setting, hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    executor, take = MadeUpExecutor(setting.layout.size), BatchSampler.take

    def slowly(sampler: BatchSampler, count: int):
        time.sleep(0.01)
        return take(sampler, count)

    monkeypatch.setattr(iterations, "GradientExecutor", lambda *_, **__: executor)
    monkeypatch.setattr(BatchSampler, "take", slowly)
    times = time_iterations(setting, [8, 40])
    assert executor.sizes[:16] == [*[8] * 4, *[40] * 4] * 2
    assert list(map(len, times.values())) == [3, 3]
    assert min(times[8]) >= 0.012
    assert min(times[40]) >= 0.02


def test_real_iterations_have_times(setting: Setting, hasty: None) -> None:
    times = time_iterations(setting, [4, 8])
    assert min(map(min, times.values())) > 0


@pytest.mark.parametrize(
    ("seconds", "rounds"), [({8: 0.001, 16: 0.002}, 201), ({8: 0.1, 16: 0.2}, 9), ({8: 6.0, 16: 12.0}, 3)]
)
def test_it_lasts_for_some_rounds_and_some_time(
    setting: Setting, tmp_path: Path, seconds: dict[int, float], rounds: int
) -> None:
    now, enough = 0.0, []
    writer = RunWriter.create(tmp_path / "run", scenario_yaml="", manifest={})
    stopwatch = _Stopwatch(writer, [*seconds], lambda: now)
    stopwatch.call(lambda: enough.append(now))
    sizes = [size for size in seconds for _ in range(4)]
    former = 0
    for iteration in range(10**4):
        size = sizes[iteration % len(sizes)]
        # What follows on another size takes longer, and so does all of the first round.
        now += seconds[size] * (1 + (size != former) + 5 * (iteration < len(sizes)))
        former = size
        report = Report(iteration + 1, 1.0, size, size, None, 0, 0, seconds[size], 0.0)
        stopwatch.iteration(0, report, now)
        if enough:
            break
    writer.close()
    assert stopwatch.times == {size: pytest.approx([each] * 3 * rounds) for size, each in seconds.items()}
    assert all(earlier <= later for earlier, later in pairwise(enough))
