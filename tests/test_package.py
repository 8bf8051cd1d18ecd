"""Versions and workflows."""

import re
import tomllib
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet

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


def test_the_oldest_python_may_have_every_constrained_package():
    """Debian's is older than the newest release of its minor version, which `.github` tests."""
    oldest = f"{PROJECT['requires-python'].removeprefix('>=')}.0"
    named = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    needed = {}
    for name in named:
        with suppress(metadata.PackageNotFoundError):  # Of an extra that is not installed.
            needed[name] = metadata.metadata(name).get("Requires-Python") or ""
    assert len(needed) > 50
    assert [name for name, python in needed.items() if not SpecifierSet(python).contains(oldest)] == []


def test_workflows_have_read_permissions_only():
    for file in WORKFLOWS:
        assert yaml.safe_load(file.read_text())["permissions"] == {"contents": "read"}
