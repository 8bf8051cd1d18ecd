"""Long runs are announced early, on a terminal or not."""

import pytest
from numba import njit
from rich.console import Console

from dlion_sim.cli import progress
from dlion_sim.cli.progress import Pace
from dlion_sim.errors import InputError
from dlion_sim.metric import ACCURACY
from dlion_sim.simulation import Progress
from tests.simulation.scenarios import digits


@pytest.fixture
def clock(monkeypatch):
    """Seconds, which the test sets."""
    now = [0.0]
    monkeypatch.setattr(progress, "Pace", lambda total: Pace(total, lambda: now[0]))
    return now


def watched(clock, pace: float, *, quiet: bool = False, **keys) -> None:
    """A run that compiles for 100 s at its very first, and again soon after, and else does so much a second."""
    with progress.progress_bar(digits(**keys), quiet=quiet) as observe:
        for number, second in enumerate((0, 100, 101, *range(201, 260))):
            clock[0] = second
            observe(Progress(virtual_seconds=number * pace, iterations=number * pace, score=None, metric=ACCURACY))


def test_a_run_of_hours_is_announced_once(clock, capsys):
    watched(clock, 0.02, duration="200 s")
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "about" in line]
    assert line.startswith("about 2.8 h for the rest of 200 s; --set duration=... shortens it")


def test_a_run_without_a_duration_is_announced_in_iterations(clock, capsys):
    watched(clock, 0.5, duration=None, iterations=2000)
    assert "about 66 min for the rest of 2000 iterations; --set iterations=..." in capsys.readouterr().err


def test_a_run_that_cannot_start_shows_no_bar(capsys):
    with pytest.raises(InputError), progress.progress_bar(digits(), quiet=False):
        raise InputError("no model is named 'mpl'")
    assert capsys.readouterr().err == ""


def test_short_and_quiet_runs_are_not_announced(clock, capsys):
    watched(clock, 0.2, duration="200 s")
    watched(clock, 0.02, duration="200 s", quiet=True)
    assert "about" not in capsys.readouterr().err


def test_compilation_is_reported_once(capsys):
    with progress.report_compiling(Console(stderr=True)):
        assert njit(lambda: 1)() + njit(lambda: 2)() == 3
    assert capsys.readouterr().err.count("compiling the simulator's kernels, once on this machine") == 1
