"""The commands of the worked example, with addresses of this machine."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dlion_sim.live.private_file import write_secret
from dlion_sim.results import Run
from dlion_sim.scenario import load
from tests.at_once import AtOnce
from tests.calibration.steady import steady
from tests.command import dlion
from tests.live.mesh import free_addresses

PAGE = (Path(__file__).parents[1] / "docs" / "worked-example.md").read_text()
COMMANDS = [shlex.split(line) for line in re.findall(r"^    dlion (.*)$", PAGE, re.MULTILINE)]
ADDRESSES = "10.0.0.1:7000,10.1.0.1:7000"
BRIEF = ["--seconds", "0.5"]
"""For each direction of the measured path."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which all commands of the page ran, in order."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        steady(patch)
        patch.setattr("dlion_sim.sweep.LocalProcesses", AtOnce)
        write_secret(Path("secret"))
        mine = re.search(r"```yaml\n(name: .*?)```", PAGE, re.DOTALL)[1]
        Path("mine.yaml").write_text(mine.replace("duration: 2 s", "duration: 0.5 s"))
        Path("machines.csv").write_text(re.search(r"```csv\n(.*?)```", PAGE, re.DOTALL)[1])
        free = ",".join(map(str, free_addresses(2)))
        given = {ADDRESSES: free, "2 s": "0.5 s"}  # an earlier deadline
        commands = [[given.get(part, part) for part in command] for command in COMMANDS]
        (west,) = (command for command in commands if command[:4] == ["calibrate", "node", "--rank", "1"])
        commands.remove(west)
        with subprocess.Popen([sys.executable, "-m", "dlion_sim", *west, *BRIEF, "-q"]) as node:
            for command in commands:
                brief = BRIEF if command[:2] == ["calibrate", "node"] else []
                quiet = [] if command[0] == "compare" else ["-q"]
                assert dlion(patch, *command, *brief, *quiet) == 0, command
        assert node.returncode == 0
    return folder


def test_commands_cover_all_steps():
    assert [command[:2] for command in COMMANDS[:2]] == [["calibrate", "compute"], ["calibrate", "node"]]
    assert list(dict.fromkeys(command[0] for command in COMMANDS)) == [
        "calibrate",
        "run",
        "stalls",
        "compare",
        "recommend",
    ]


def test_the_calibration_is_as_on_the_page(folder):
    shown = yaml.safe_load(re.search(r"```yaml\n(workload:.*?)```", PAGE, re.DOTALL)[1])
    written = yaml.safe_load((folder / "machine.yaml").read_text())
    assert shown["workload"].keys() == written["workload"].keys()
    assert shown["workload"]["compute_time"]["beta"] == written["workload"]["compute_time"]["beta"]
    network = yaml.safe_load((folder / "network.yaml").read_text())["cluster"]
    assert [cloud["name"] for cloud in network["clouds"]] == ["east", "west"]


def test_the_scenario_has_the_measured_network(folder):
    scenario = load(folder / "mine.yaml")
    bandwidth, rtt = scenario.cluster.wan_path("west", "east")
    assert bandwidth.value_at(0) > 10e6
    assert 0 < rtt < 0.1


def test_results_are_as_on_the_page(folder):
    runs = {name: Run.open(folder / "runs" / name) for name in ("dlion", "baseline")}
    assert all(run.summary["status"] == "completed" for run in runs.values())
    assert runs["dlion"].summary["accuracy"]["mean"] > runs["baseline"].summary["accuracy"]["mean"] + 0.1
    assert (folder / "why" / "stalls.json").exists()
    assert len(load(folder / "advice" / "winner.yaml").cluster.workers) == 1
