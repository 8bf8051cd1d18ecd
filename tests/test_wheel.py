"""The wheel: its contents, and equal results to a checkout, outside of one and without network."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from dlion_sim.results import WALL_CLOCK_COLUMNS, Run
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
SHORT = ["--set", "duration=300 ms"]
SEVERAL = """
import json, sys
from dlion_sim.cli.main import app

for arguments in json.loads(sys.argv[1]):
    app(arguments, standalone_mode=False)
    print("=" * 9)
"""
"""Commands in one process, as imports take seconds."""


class Installed:
    """A fresh environment with the wheel, this environment's dependencies, and no network; and an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.here = folder / "empty"
        self.here.mkdir()
        place = folder / "venv"
        self.programs = place / "bin"
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}))
        pip = [sys.executable, "-m", "pip", "--quiet"]
        python, install = self.programs / "python", ["install", "--no-compile", "--no-deps", "--no-index"]
        for command in (
            [*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT],
            [sys.executable, "-m", "venv", "--without-pip", place],
            [*pip, "--python", python, *install, "--find-links", folder, "dlion-sim"],
        ):
            subprocess.run(command, check=True)
        (self.wheel,) = folder.glob("*.whl")
        # The checkout's compiled kernels, which are taken for sources of the same time and size.
        for file in (ROOT / "dlion_sim").rglob("*.py"):
            shutil.copystat(file, self.packages / file.relative_to(ROOT))
        for file in (ROOT / "dlion_sim").rglob("*.nb[ic]"):
            cached = self.packages / file.relative_to(ROOT)
            cached.parent.mkdir(exist_ok=True)
            shutil.copy2(file, cached)
        # As plain paths, so that the .pth of the checkout is not read.
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

    def dlion(self, *commands: list[str]) -> list[str]:
        """The output of each command; all run in one process."""
        return self.run("python", "-c", SEVERAL, json.dumps(commands)).split("=" * 9 + "\n")[:-1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


def files(folder):
    return {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    }


def test_the_wheel_has_the_package_and_the_shipped_scenarios(installed):
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    scenarios = {f"dlion_sim/shipped_{name}" for name in files("scenarios")}
    assert len(scenarios) > 60
    assert {name for name in names if ".dist-info/" not in name} == files("dlion_sim") | scenarios
    assert {name.rpartition("/")[2] for name in names if ".dist-info/" in name} >= {"entry_points.txt", "LICENSE"}


def test_the_installed_package_is_imported(installed):
    where = "import dlion_sim; print(dlion_sim.__file__)"
    assert installed.run("python", "-c", where) == f"{installed.packages}/dlion_sim/__init__.py\n"
    assert installed.run("python", "-m", "dlion_sim", "--version") == installed.run("dlion", "--version")


def test_lists_equal_those_of_a_checkout(installed, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    commands = [["scenarios"], ["systems"], ["schema"], ["devices"]]
    for arguments, there in zip(commands, installed.dlion(*commands), strict=True):
        assert dlion(monkeypatch, *arguments) == 0
        here = capsys.readouterr().out
        assert there.split(" files in ")[0] == here.split(" files in ")[0], arguments


def test_a_shipped_scenario_has_the_same_result(installed, monkeypatch, tmp_path):
    installed.run("dlion", "run", "quickstart", *SHORT)
    assert dlion(monkeypatch, "run", "quickstart", *SHORT, "--quiet", "--output", tmp_path / "run") == 0
    here, there = Run.open(tmp_path / "run"), Run.open(installed.here / "results/runs/quickstart-dlion-seed0")
    assert here.manifest["versions"] == there.manifest["versions"]
    measured, expected = (each.metrics().drop(columns=list(WALL_CLOCK_COLUMNS)) for each in (there, here))
    assert measured.equals(expected)
    assert (there.folder / "accuracy.png").exists()


def test_own_code_and_embedded_data_are_used(installed):
    """A scenario with a trace and the page's system, the page's workload in another folder, and embedded texts."""
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class Gossip" in each)
    (installed.here / "gossip.py").write_text(code)
    (installed.here / "own.yml").write_text(OWN)
    (installed.here / "nic.csv").write_text("time_s,mbps\n0,10\n1,5\n")
    folder = installed.here / "elsewhere"
    folder.mkdir()
    (folder / "waves.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", OWN_WORKLOAD, re.DOTALL)))
    (workload,) = re.findall(r"```yaml\n(.*?)```", OWN_WORKLOAD, re.DOTALL)
    (folder / "waves.yml").write_text(WAVES + workload)
    gpt = ("workload.dataset=shakespeare", "workload.model={name: gpt, layers: 1, heads: 2, width: 8}")
    fast = ("workload.evaluation_samples=20", "workload.batch_size=4", "workload.compute_time.beta=1 ms")
    texts = [option for each in (*gpt, *fast) for option in ("--set", each)]
    gossip, waves, perplexity = installed.dlion(
        ["run", "own.yml"],
        ["run", "elsewhere/waves.yml", *SHORT],
        ["run", "quickstart", *texts, *SHORT, "--output", "texts"],
    )
    assert "gossip:GOSSIP" in gossip
    assert "rmse" in waves
    assert "perplexity" in perplexity


def test_a_sweep_is_run(installed):
    (installed.here / "sweep.yaml").write_text("{base: quickstart, axes: {duration: [300 ms], seed: [1]}}")
    planned, swept = installed.dlion(
        ["sweep", "sweeps/digits", "--output", "planned", "--dry-run", "-q"],
        ["sweep", "sweep.yaml", "--output", "swept"],
    )
    assert planned == ""
    assert "1 run: 1 to do" in swept
    assert Run.open(installed.here / "swept/quickstart").manifest["status"] == "completed"
