"""Versions and workflows."""

import re
import tomllib
from pathlib import Path

import yaml

import dlion_sim

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_all_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == dlion_sim.__version__ == str(citation["version"])


def test_workflows_run_existing_targets():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = {target for file in WORKFLOWS for target in re.findall(r"\bmake ([a-z]+)", file.read_text())}
    assert run >= {"docs", "lint", "package"}
    assert run <= targets


def test_every_supported_python_is_tested():
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["tests"]["strategy"]["matrix"]
    promised = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert matrix["python"] == promised


def test_workflows_have_read_permissions_only():
    for file in WORKFLOWS:
        assert yaml.safe_load(file.read_text())["permissions"] == {"contents": "read"}
