"""Scenarios and sweeps on pages are valid, and their Python compiles and imports.

Whole pages of Python are run by tests of their own: `test_python_page.py`, `test_own_workload_page.py`,
`protocol/test_extensions.py`, `test_documents.py`.
"""

import ast
import importlib
import re

import pytest
import yaml

from dlion_sim.scenario import Scenario, from_data
from dlion_sim.sweep import check, load_sweep
from tests.pages import PAGES, ROOT, blocks, place, put_measurements

ELSEWHERE = {
    "docs/recommend.md": "has no machines of its own: recommend/test_candidates.py",
    "docs/worked-example.md": "takes what is measured: test_worked_example_page.py",
}
WAN = {"bandwidth": "10 Mbps", "rtt": "20 ms"}
CLOUDS = [{"name": name, "workers": [{"count": 4, "compute": "8 cores"}]} for name in ("east", "west", "north", "core")]
BASE = {
    "name": "base",
    "duration": "20 min",
    "workload": {"dataset": "digits", "model": "mlp", "optimizer": {"learning_rate": 0.1}},
    "cluster": {"clouds": [*CLOUDS, {**CLOUDS[0], "name": "edge"}], "wan": WAN},
    "system": "dlion",
}
INSIDE = {
    "nic": lambda cluster, value: cluster["clouds"][0]["workers"][0].update(nic=value),
    "lan": lambda cluster, value: cluster["clouds"][0].update(lan=value),
    "wan": lambda cluster, value: cluster.update(wan=WAN | value),
}
"""Where a fragment of a cluster goes."""


def alternatives(text):
    """The mappings that a block shows: one, or one a line where the lines are alternatives."""
    keys = re.findall(r"^(\w+):", text, re.MULTILINE)
    return [yaml.safe_load(each) for each in ([text] if len(keys) == len(set(keys)) else text.splitlines())]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files that fragments name."""
    monkeypatch.chdir(tmp_path)
    put_measurements(tmp_path)
    return tmp_path


WITH_YAML = [page for page in PAGES if blocks(page, "yaml") and place(page) not in ELSEWHERE]


@pytest.mark.parametrize("page", WITH_YAML, ids=place)
def test_scenarios_and_their_parts_are_valid(here, page):
    for text in blocks(page, "yaml"):
        for shown in alternatives(text):
            if "base" in shown:
                (here / "sweep.yaml").write_text(text)
                check(load_sweep(here / "sweep.yaml"))
            elif "name" in shown and "cluster" in shown:
                from_data(shown)
            else:
                from_data(completed(shown))


def completed(part):
    """A whole scenario with a part of one in its place."""
    data = yaml.safe_load(yaml.safe_dump(BASE))
    for key, value in part.items():
        if key in INSIDE:
            INSIDE[key](data["cluster"], value)
        else:
            assert key in Scenario.model_fields, key
            data[key] = data[key] | value if key == "workload" else value
    return data


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=place)
def test_python_compiles_and_imports(page):
    for text in blocks(page, "python"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("dlion_sim"):
                module = importlib.import_module(node.module)
                assert not [each.name for each in node.names if not hasattr(module, each.name)]


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    from dlion_sim.simulation import simulate
    from tests.simulation.scenarios import digits

    (text,) = blocks(ROOT / "README.md", "python")
    monkeypatch.chdir(tmp_path)
    simulate(digits("duration=1 s"), tmp_path / "results" / "runs" / "one")
    exec(text, {})
