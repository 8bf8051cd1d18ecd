import logging
import os
import subprocess
import sys

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


def test_kernels_that_can_be_kept_nowhere_are_told_in_a_line(tmp_path):
    # Of numba's places none is left but the one for notebooks.
    environment = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    command = [sys.executable, "-m", "dlion_sim", "run", "quickstart", "--output", tmp_path / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("dlion: compiled kernels can be cached neither")
    assert "allowed: NUMBA_CACHE_DIR=DIR" in line
    assert not (tmp_path / "run").exists()
