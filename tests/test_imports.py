"""Who may import whom: the house that docs/design.md describes."""

import ast
from pathlib import Path

import pytest

import dlion_sim

ROOT = Path(dlion_sim.__file__).parent
LEAVES = {"errors", "files", "interrupts", "streams", "yaml_text"}
MAY_IMPORT = {
    "scenario": set(),
    "learning": set(),
    "results": set(),
    "protocol": {"learning.flat", "learning.replica", "scenario"},
    "participants": {"protocol", "learning", "results", "scenario"},
    "simulation": {"participants", "protocol", "learning", "results", "scenario"},
    "live": {"participants", "protocol", "learning", "results", "scenario"},
    "emulation": {"live", "participants", "results", "scenario"},
    "analysis": {"results", "scenario"},
    "figures": {"analysis", "results", "scenario"},
    "export": {"analysis", "results"},
    "sweep": {"simulation", "protocol.compose", "protocol.extensions", "analysis", "results", "scenario"},
    "validation": {"simulation", "emulation", "analysis", "figures", "results", "scenario"},
    "cli": {
        "scenario",
        "protocol",
        "learning",
        "results",
        "simulation",
        "live",
        "emulation",
        "analysis",
        "figures",
        "export",
        "sweep",
        "validation",
    },
}


def imported(file: Path) -> set[str]:
    """The modules of ours that a file imports, without the package's own name."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: relative import"
            modules.add(node.module)
    return {name.removeprefix("dlion_sim.") for name in modules if name.startswith("dlion_sim.")}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_downwards_only(package):
    allowed = MAY_IMPORT[package] | LEAVES | {package}
    for file in (ROOT / package).rglob("*.py"):
        for module in imported(file):
            assert any(module == one or module.startswith(one + ".") for one in allowed), f"{file} imports {module}"


def test_every_package_has_its_rule():
    assert {folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").exists()} == set(MAY_IMPORT)


def test_the_protocol_knows_neither_clock_nor_socket():
    for file in (ROOT / "protocol").rglob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not names & {"simpy", "asyncio", "socket", "time", "random", "threading"}, file
