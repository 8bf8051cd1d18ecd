"""Compiled kernels on machines that cannot compile or cache them."""

import logging
import os
import subprocess
import sys

from dlion_sim import load
from dlion_sim.learning.layers import kernels
from tests.command import dlion


def test_kernels_that_cannot_be_compiled_are_replaced_with_a_warning(monkeypatch, tmp_path, capsys):
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


def test_kernels_that_cannot_be_cached_are_one_line(tmp_path):
    # Only numba's cache for notebooks remains.
    environment = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    command = [sys.executable, "-m", "dlion_sim", "run", "quickstart", "--output", tmp_path / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("dlion: compiled kernels can be cached neither")
    assert "allowed: NUMBA_CACHE_DIR=DIR" in line
    assert not (tmp_path / "run").exists()
