"""What is published: the wheel's contents, and workflows that name what there is."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import dlion_sim

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names in the wheel, built by what is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(command, check=True, timeout=120)
    (file,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(file).namelist())


def files(folder):
    return {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    }


def test_the_wheel_has_the_package_and_the_ready_scenarios_and_nothing_else(wheel):
    scenarios = {f"dlion_sim/shipped_{name}" for name in files("scenarios")}
    assert len(scenarios) > 60
    assert {name for name in wheel if ".dist-info/" not in name} == files("dlion_sim") | scenarios


def test_the_wheel_has_the_command_and_the_licence(wheel):
    assert {name.rpartition("/")[2] for name in wheel if ".dist-info/" in name} >= {"entry_points.txt", "LICENSE"}


def test_one_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == dlion_sim.__version__ == str(citation["version"])


def test_workflows_run_targets_that_there_are():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = {target for file in WORKFLOWS for target in re.findall(r"\bmake ([a-z]+)", file.read_text())}
    assert run >= {"docs", "lint", "package"}
    assert run <= targets


def test_every_python_that_is_promised_is_tested():
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["tests"]["strategy"]["matrix"]
    promised = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert matrix["python"] == promised


def test_workflows_have_no_rights_but_those_they_name():
    for file in WORKFLOWS:
        assert yaml.safe_load(file.read_text())["permissions"] == {"contents": "read"}
