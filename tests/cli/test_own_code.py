"""Errors in a user's own code show only the lines of that code."""

import sys

import pytest

from dlion_sim.scenario import dump
from dlion_sim.sweep.estimating import estimate
from dlion_sim.sweep.job import Job, work
from tests.command import dlion
from tests.simulation.scenarios import digits

OWN = """\
from dlion_sim.protocol.choices import ChoiceParameters, Exchange


class Boom(Exchange):
    \"\"\"Fails at the first gradient.\"\"\"

    sends_every_iteration = False

    class Parameters(ChoiceParameters):
        pass

    def outgoing(self, own):
        return self.chosen(own)

    def chosen(self, own):
        raise KeyError("no such peer")
"""
SYSTEM = "{name: baseline, exchange: boom:Boom, synchronization: asynchronous}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "boom.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("SYSTEM = 1 / 0\n")
    (tmp_path / "wrong.py").write_text("def f(:\n")
    (tmp_path / "small.yaml").write_text(dump(digits()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield tmp_path
    for module in ("boom", "broken", "wrong"):
        sys.modules.pop(module, None)


def test_an_error_in_a_choice_shows_only_its_frames(here, monkeypatch, capsys):
    assert dlion(monkeypatch, "run", "small.yaml", "--set", f"system={SYSTEM}", "-q", "-o", "out") == 1
    first, *frames = capsys.readouterr().err.splitlines()
    place = f"in {here / 'boom.py'}, line 16, in chosen"
    assert first == f"dlion: system.exchange (boom:Boom): KeyError {place}: 'no such peer'"
    assert [line.strip() for line in frames if line.startswith("  File")] == [
        f'File "{here / "boom.py"}", line 13, in outgoing',
        f'File "{here / "boom.py"}", line 16, in chosen',
    ]
    assert frames[-1] == "KeyError: 'no such peer'"


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("broken:SYSTEM", ["system.name (broken:SYSTEM): ZeroDivisionError", "broken.py, line 1", "SYSTEM = 1 / 0"]),
        ("wrong:SYSTEM", ["system.name (wrong:SYSTEM): SyntaxError", "wrong.py, line 1", "def f(:"]),
    ],
)
def test_a_module_that_cannot_be_imported_shows_only_its_line(here, monkeypatch, capsys, system, words):
    assert dlion(monkeypatch, "run", "small.yaml", "--set", f"system={system}", "-o", "out") == 1
    told = capsys.readouterr().err
    assert all(word in told for word in words)
    assert "importlib" not in told
    assert "dlion_sim" not in told
    assert not (here / "out").exists()


def test_a_job_of_a_sweep_fails_with_the_same_line(here):
    scenario = digits(f"system={SYSTEM}")
    job = Job("one", str(here / "one"), dump(scenario), {"sweep": {"digest": ""}}, "cpu")
    ended = work(job, lambda: False, lambda event: None)
    assert ended.status == "failed"
    assert ended.problem.endswith("boom.py, line 16, in chosen: 'no such peer'")
    assert "dlion_sim" not in ended.trace


@pytest.mark.usefixtures("at_once")
def test_a_sweep_checks_once_and_tells_why_its_wall_time_is_unknown(here, monkeypatch, capsys):
    checks = []
    monkeypatch.setattr("dlion_sim.sweep.check", checks.append)
    monkeypatch.setattr("dlion_sim.sweep.estimate", estimate)  # which `at_once` replaces
    (here / "sweep.yaml").write_text(f"base: small.yaml\naxes: {{system: {{own: {SYSTEM}}}}}\n")
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "-o", "out", "--jobs", "1") == 1
    told = capsys.readouterr()
    assert "the wall time is unknown: system.exchange (boom:Boom): KeyError" in told.out
    assert "out/small: failed: system.exchange (boom:Boom): KeyError" in told.err
    assert "Traceback" not in told.out + told.err
    assert len([points for points in checks if points]) == 1
