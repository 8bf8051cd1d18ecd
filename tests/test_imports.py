"""Import rules of packages, as in docs/architecture.md."""

import ast
from pathlib import Path

import pytest

import dlion_sim

ROOT = Path(dlion_sim.__file__).parent
IO = {"asyncio", "multiprocessing", "random", "selectors", "simpy", "socket", "subprocess", "threading", "time"}
LEAVES = {"__version__", "addresses", "errors", "files", "interrupts", "metric", "streams", "yaml_text"}
LEAVES |= {"own_code", "own_sources"}
MAY_IMPORT = {
    "scenario": set(),
    "learning": set(),
    "results": set(),
    "protocol": {"learning.flat", "learning.replica", "scenario"},
    "bounded_loss": {"learning.flat", "protocol.messages", "scenario"},
    "assembly": {"protocol", "learning", "results", "scenario"},
    "simulation": {"assembly", "bounded_loss", "protocol", "learning", "results", "scenario"},
    "live": {"assembly", "bounded_loss", "protocol", "learning", "results", "scenario"},
    "calibration": {"live", "assembly", "protocol", "learning", "results", "scenario"},
    "emulation": {"calibration", "live", "assembly", "results", "scenario"},
    "analysis": {"results", "scenario"},
    "figures": {"analysis", "results", "scenario"},
    "report": {"analysis", "figures.looks", "figures.panels", "figures.style", "results", "scenario"},
    "sweep": {"simulation", "protocol.compose", "learning.datasets", "analysis", "results", "scenario"},
    "recommend": {"sweep", "analysis", "figures", "results", "scenario"},
    "studies": {
        "sweep",
        "simulation",
        "emulation",
        "protocol.compose",
        "protocol.exchange",
        "analysis",
        "figures",
        "results",
        "scenario",
    },
    "cli": {
        "scenario",
        "protocol",
        "learning",
        "results",
        "simulation",
        "live",
        "emulation",
        "calibration",
        "analysis",
        "figures",
        "report",
        "sweep",
        "recommend",
        "studies",
    },
}


def imported(source: str) -> set[str]:
    """The dotted names that a source imports: of `from x import y` x.y, be that a module or what stands in one."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def strays(source: str, allowed: set[str]) -> set[str]:
    """What a source imports of ours that is neither `allowed` nor a leaf."""
    ours = {name.removeprefix("dlion_sim.") for name in imported(source) if name.partition(".")[0] == "dlion_sim"}
    return {name for name in ours if not any(name == one or name.startswith(f"{one}.") for one in allowed | LEAVES)}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_downwards_only(package):
    for file in (ROOT / package).rglob("*.py"):
        assert not strays(file.read_text(), MAY_IMPORT[package] | {package}), file


@pytest.mark.parametrize("leaf", sorted(LEAVES - {"__version__"}))
def test_leaves_import_nothing_but_leaves(leaf):
    assert not strays((ROOT / f"{leaf}.py").read_text(), set())


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("protocol", "import dlion_sim.simulation"),
        ("protocol", "import dlion_sim.simulation.engine as engine"),
        ("protocol", "from dlion_sim.simulation import Engine"),
        ("protocol", "from dlion_sim import errors, simulation"),
        ("protocol", "def later():\n    from dlion_sim import simulation"),
        ("protocol", "from dlion_sim.learning import pool"),
        ("figures", "import dlion_sim"),
        ("figures", "from dlion_sim import simulate"),
        ("results", "from dlion_sim import *"),
    ],
)
def test_forbidden_imports_are_found_in_every_form(package, source):
    assert strays(source, MAY_IMPORT[package] | {package})


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("sweep", "from dlion_sim.protocol import compose"),
        ("protocol", "from dlion_sim.learning import flat"),
        ("live", "from dlion_sim import __version__, errors, protocol"),
        ("results", "import dlion_simulator, numpy.random"),
    ],
)
def test_allowed_imports_pass_in_every_form(package, source):
    assert not strays(source, MAY_IMPORT[package] | {package})


def test_relative_imports_are_refused():
    with pytest.raises(AssertionError, match="relative"):
        imported("from . import simulation")


def test_every_package_has_a_rule():
    assert {folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").exists()} == set(MAY_IMPORT)


@pytest.mark.parametrize("package", ["protocol", "bounded_loss"])
def test_the_protocol_does_no_io(package):
    for file in (ROOT / package).rglob("*.py"):
        assert not IO & {name.partition(".")[0] for name in imported(file.read_text())}, file


def test_learning_does_not_name_keys_of_scenarios():
    for file in (ROOT / "learning").rglob("*.py"):
        assert "workload." not in file.read_text(), file
