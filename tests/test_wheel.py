"""What is installed from the wheel does what a checkout does, outside of one and without network."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from dlion_sim.results import WALL_CLOCK_COLUMNS, Run
from dlion_sim.scenario.shipped import FOLDER
from tests.command import dlion

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extend.md").read_text()
OFFLINE = """
import os, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        print("network:", event, arguments, file=sys.stderr, flush=True)
        os._exit(70)

sys.addaudithook(refuse)
"""
OWN_WORKLOAD = (ROOT / "docs" / "own-workload.md").read_text()
WAVES = """
name: waves
duration: 300 ms
cluster:
  clouds: [{name: here, workers: [{count: 2, compute: 24 cores, nic: 50 Mbps}]}]
system: dlion
"""
OWN = """
name: own
seed: 1
duration: 300 ms
workload: {dataset: digits, model: mlp, optimizer: {learning_rate: 0.1}, evaluate_every: 300 ms}
cluster:
  clouds:
    - {name: here, workers: [{count: 2, compute: 24 cores, nic: {trace: nic.csv, unit: Mbps}}]}
system: gossip:GOSSIP
"""
SHORT = ("--set", "duration=300 ms")


class Installed:
    """A fresh environment with the wheel, this environment's dependencies, and no network; and an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.here = folder / "empty"
        self.here.mkdir()
        place = folder / "venv"
        self.programs = place / "bin"
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}))
        pip = [sys.executable, "-m", "pip", "--quiet"]
        python = self.programs / "python"
        for command in (
            [*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT],
            [sys.executable, "-m", "venv", "--without-pip", place],
            [*pip, "--python", python, "install", "--no-deps", "--no-index", "--find-links", folder, "dlion-sim"],
        ):
            subprocess.run(command, check=True)
        # As paths, in which nobody looks for the .pth that this environment finds the checkout by.
        beside = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (self.packages / "offline.py").write_text(OFFLINE)
        (self.packages / "beside.pth").write_text("\n".join(["import offline", *beside]))

    def run(self, *command: object) -> str:
        """What a program prints on standard output; it must succeed."""
        ours = {"PYTHONPATH", "DLION_DATA", "NUMBA_CACHE_DIR"}
        environment = {name: value for name, value in os.environ.items() if name not in ours} | {"COLUMNS": "100"}
        name, *arguments = map(str, command)
        done = subprocess.run(
            [self.programs / name, *arguments], cwd=self.here, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


def test_it_is_the_wheels_and_has_all_that_is_ready(installed):
    where = "import dlion_sim; print(dlion_sim.__file__)"
    assert installed.run("python", "-c", where) == f"{installed.packages}/dlion_sim/__init__.py\n"
    assert installed.run("python", "-m", "dlion_sim", "--version") == installed.run("dlion", "--version")
    inside = installed.packages / "dlion_sim" / "shipped_scenarios"
    assert {file.relative_to(inside) for file in inside.rglob("*")} == {
        file.relative_to(FOLDER) for file in FOLDER.rglob("*")
    }


@pytest.mark.parametrize("arguments", [["--help"], ["scenarios"], ["systems"], ["schema"], ["devices"]])
def test_it_lists_what_a_checkout_lists(installed, capsys, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "100")
    assert dlion(monkeypatch, *arguments) == 0
    here, there = (
        re.split(" files in ", each) for each in (capsys.readouterr().out, installed.run("dlion", *arguments))
    )
    assert here[0] == there[0]
    assert len(here) == len(there) == 1 + (arguments == ["scenarios"])


def test_it_runs_what_is_ready_to_the_same_result(installed, monkeypatch, tmp_path):
    installed.run("dlion", "run", "quickstart", *SHORT)
    assert dlion(monkeypatch, "run", "quickstart", *SHORT, "--quiet", "--output", tmp_path / "run") == 0
    here, there = Run.open(tmp_path / "run"), Run.open(installed.here / "results/runs/quickstart-dlion-seed0")
    assert here.manifest["versions"] == there.manifest["versions"]
    measured, expected = (each.metrics().drop(columns=list(WALL_CLOCK_COLUMNS)) for each in (there, here))
    assert measured.equals(expected)
    assert (there.folder / "accuracy.png").exists()


def test_it_runs_a_scenario_beside_with_a_trace_and_the_pages_own_system(installed):
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class Gossip" in each)
    (installed.here / "gossip.py").write_text(code)
    (installed.here / "own.yml").write_text(OWN)
    (installed.here / "nic.csv").write_text("time_s,mbps\n0,10\n1,5\n")
    assert "gossip:GOSSIP" in installed.run("dlion", "run", "own.yml")


def test_it_learns_the_pages_own_workload_from_another_folder(installed):
    folder = installed.here / "elsewhere"
    folder.mkdir()
    (folder / "waves.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", OWN_WORKLOAD, re.DOTALL)))
    (workload,) = re.findall(r"```yaml\n(.*?)```", OWN_WORKLOAD, re.DOTALL)
    (folder / "waves.yml").write_text(WAVES + workload)
    assert "rmse" in installed.run("dlion", "run", "elsewhere/waves.yml", *SHORT)


def test_it_learns_the_texts_that_come_with_it(installed):
    gpt = ("workload.dataset=shakespeare", "workload.model={name: gpt, layers: 1, heads: 2, width: 8}")
    fast = ("workload.evaluation_samples=20", "workload.batch_size=4", "workload.compute_time.beta=1 ms")
    overrides = [option for each in (*gpt, *fast) for option in ("--set", each)]
    assert "perplexity" in installed.run("dlion", "run", "quickstart", *overrides, *SHORT, "--output", "texts")
    assert len(Run.open(installed.here / "texts").iterations())


def test_it_plans_a_ready_sweep_and_does_another(installed):
    assert "45 runs: 45 to do" in installed.run("dlion", "sweep", "sweeps/digits", "--output", "planned", "--dry-run")
    (installed.here / "sweep.yaml").write_text("{base: quickstart, axes: {duration: [300 ms], seed: [1]}}")
    assert "1 run: 1 to do" in installed.run("dlion", "sweep", "sweep.yaml", "--output", "swept")
    assert Run.open(installed.here / "swept/quickstart").manifest["status"] == "completed"
