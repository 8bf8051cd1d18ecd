import logging

from dlion_sim import load
from dlion_sim.learning.layers import kernels
from tests.command import dlion


def test_kernels_that_cannot_be_compiled_are_told_in_a_line(monkeypatch, tmp_path, capsys):
    def fail():
        raise OSError("no compiler")

    monkeypatch.setattr(kernels, "prepare", fail)
    monkeypatch.setattr(logging.root, "handlers", [])
    short = ["--set", "workload.model=cipher", "--set", "duration=200 ms", "--set", "workload.evaluation_samples=10"]
    assert dlion(monkeypatch, "run", "quickstart", *short, "--device", "cpu", "-o", tmp_path / "run", "--quiet") == 0
    assert capsys.readouterr().err == (
        "dlion: kernels: fast cannot be compiled here (OSError: no compiler), "
        "so PyTorch's kernels compute, and take longer\n"
    )
    assert load(tmp_path / "run").runs[0].manifest["kernels"] == "torch"


def test_other_kernels_are_refused_in_a_line(monkeypatch, tmp_path, capsys):
    asked = ["run", "quickstart", "--set", "workload.kernels=mkl", "-o", tmp_path / "run"]
    assert dlion(monkeypatch, *asked) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "workload.kernels" in line
    assert "fast" in line
    assert not (tmp_path / "run").exists()
