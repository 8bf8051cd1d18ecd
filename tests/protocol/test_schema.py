"""The JSON Schema accepts what loads and refuses what doesn't; the reference made from it is current."""

import importlib.util
import re
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
import yaml

from dlion_sim.protocol.schema import scenario_schema
from dlion_sim.scenario import shipped
from dlion_sim.scenario.system import AnyTopology

DOCS = Path(__file__).parents[2] / "docs"
VALIDATOR = jsonschema.Draft202012Validator(scenario_schema())


@pytest.mark.parametrize("file", shipped(), ids=lambda file: file.stem)
def test_shipped_scenarios_are_valid(file):
    VALIDATOR.validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    "change",
    [
        {"system": {"name": "dlion", "exchange": {"n_min": 10}, "knowledge_transfer": "none"}},
        {"workload": {"dataset": "digits", "partition": "dirichlet"}},
    ],
)
def test_short_forms_are_valid(change):
    VALIDATOR.validate({**yaml.safe_load(shipped()[0].read_text()), **change})


@pytest.mark.parametrize(
    "change",
    [{"system": "dlionn"}, {"system": {"name": "dlion", "exchange": {"n_mim": 10}}}, {"seeed": 1}, {"seed": -1}],
)
def test_mistakes_are_not(change):
    assert list(VALIDATOR.iter_errors({**yaml.safe_load(shipped()[0].read_text()), **change}))


def test_the_reference_is_current():
    spec = importlib.util.spec_from_file_location("make_scenario_reference", DOCS / "make_scenario_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages = module.reference()
    assert {name: (DOCS / name).read_text() for name in pages} == pages, "run: python docs/make_scenario_reference.py"
    assert {f"scenario/{page.name}" for page in (DOCS / "scenario").iterdir()} | {"scenario.md"} == set(pages)


def test_the_reference_has_every_graph_of_peers():
    page = (DOCS / "scenario" / "system.md").read_text()
    kinds = {topology.model_fields["kind"].default for topology in get_args(AnyTopology)}
    assert kinds == set(re.findall(r"^### `topology: (\w+)`$", page, re.MULTILINE))


def test_the_reference_reads_as_sentences_apart_from_the_systems():
    pages = [DOCS / "scenario.md", *(DOCS / "scenario").glob("[!s]*.md")]
    rows = re.findall(
        r"^- `\w+(?:: [^`]*)?`(?: \(.*?\))?: (?!as \[)(.*)$",
        "\n".join(page.read_text() for page in pages),
        re.MULTILINE,
    )
    assert len(rows) > 40
    assert not [row for row in rows if not re.fullmatch(r"(?!Of |In |For |None)[A-Z].*\w \w.*\.", row)]
