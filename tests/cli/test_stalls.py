"""`dlion stalls`: output, resumption, bad input."""

import pytest

from dlion_sim.scenario import dump
from dlion_sim.simulation.engine import Engine
from tests.cli.test_bad_input import fails_with_one_line
from tests.command import dlion
from tests.simulation.scenarios import digits


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(dump(digits("system=baseline")))
    return tmp_path


def test_an_interrupted_analysis_resumes(capsys, monkeypatch, here):
    ended = Engine.run
    monkeypatch.setattr(Engine, "run", lambda self, interrupted, *others: ended(self, lambda: True, *others))
    assert dlion(monkeypatch, "stalls", "small.yaml", "-o", "out", "--iterations", 10) == 130
    assert "the same command continues" in capsys.readouterr().out
    assert [folder.name for folder in (here / "out").iterdir()] == ["R4"]
    monkeypatch.setattr(Engine, "run", ended)
    assert dlion(monkeypatch, "stalls", "small.yaml", "-o", "out", "--iterations", 10) == 0
    said, shown = capsys.readouterr()
    assert "small · baseline" in shown
    assert "test accuracy" not in shown, "one sample is evaluated"
    assert "runs and one timeline agree within" in said
    for words in ("east/0", "straggler", "slowdown", "NICs without a limit", "waits", "% of its time, mostly for"):
        assert words in said
    assert {"stalls.json", "stalls.png", "R0", "R1", "R1x", "R4"} == {
        file.name for file in (here / "out").iterdir() if file.suffix or file.name.startswith("R")
    }
    assert dlion(monkeypatch, "stalls", "small.yaml", "-o", "out", "--iterations", 10, "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_an_outage_after_the_counted_iterations_is_noted(capsys, monkeypatch, here):
    later = 'availability={"workers": {"west/0": {"down": [["50 s", "51 s"]]}}}'
    assert dlion(monkeypatch, "stalls", "small.yaml", "-o", "out", "--iterations", 10, "--set", later) == 0
    said = capsys.readouterr().out
    assert "no worker was down in the counted iterations" in said
    for words in ("churn", "no outages"):
        assert words in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.yaml", "-o", "out"], ["no.yaml", "no such file"]),
        (["small.yaml", "-o", "small.yaml"], ["small.yaml", "is a file"]),
        (["small.yaml", "-o", "out", "--set", "workload.input={cache: 1}"], ["workload.input", "prep_rate, disk"]),
        (
            ["small.yaml", "-o", "out", "--set", "workload.input={disk: 100 MB/s}"],
            ["workload.input", "disk and sample_bytes go together"],
        ),
        (["small.yaml", "-o", "out", "--set", "workload.input={prep_rate: 0}"], ["prep_rate", "more than 0"]),
        (["small.yaml", "-o", "out", "--set", "system.topology=torus"], ["system.topology", "3 workers"]),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, here, arguments, words):
    line = fails_with_one_line(capsys, monkeypatch, here, "stalls", *arguments)
    for word in words:
        assert word in line
