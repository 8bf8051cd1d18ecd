"""Linting covers the project's own files, and no others that lie in a checkout."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_stray_files_are_not_linted(tmp_path, command):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for stray in ("my_test.py", "scratch/try.py"):
        (tmp_path / stray).parent.mkdir(exist_ok=True)
        (tmp_path / stray).write_text("import os ;x = 'a'\n")
    ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
    assert subprocess.run(ruff, cwd=tmp_path, capture_output=True).returncode == 0
    (tmp_path / "dlion_sim").mkdir()
    shutil.copy(tmp_path / "my_test.py", tmp_path / "dlion_sim/own.py")
    assert subprocess.run(ruff, cwd=tmp_path, capture_output=True).returncode == 1


def test_mypy_and_pytest_cover_the_projects_folders():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["mypy"]["files"] == ["benchmarks", "dlion_sim", "docs", "emulation", "examples"]
    assert tools["pytest"]["ini_options"]["testpaths"] == ["tests"]


@pytest.mark.parametrize("name", ["llvmlite", "numba"])
def test_compilers_of_kernels_have_tested_versions(name):
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (allowed,) = (each.specifier for each in map(Requirement, given) if each.name == name)
    (tried,) = (each for each in (ROOT / "constraints.txt").read_text().split() if each.startswith(f"{name}=="))
    assert tried.removeprefix(f"{name}==") in allowed
    assert "1000" not in allowed
