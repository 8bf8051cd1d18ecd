"""Each example's commands run, small, as its page has them; its figure is what they draw."""

import re
import shutil
import sys

import pytest
import yaml

from dlion_sim.simulation import simulate
from dlion_sim.sweep import load_sweep
from tests.command import dlion
from tests.pages import ROOT, commands

EXAMPLES = sorted(page.parent.name for page in (ROOT / "examples").glob("*/README.md"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A copy of the examples, which last a second and have one seed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    shutil.copytree(ROOT / "examples", "examples", ignore=shutil.ignore_patterns("*.png"))
    for file in (tmp_path / "examples").glob("*/*.yaml"):
        text = re.sub(r"seed: \[.*\]", "seed: [0]", file.read_text())
        file.write_text(re.sub(r"^( *duration|  evaluate_every): .*", r"\1: 1 s", text, flags=re.MULTILINE))
    yield tmp_path
    sys.modules.pop("patient", None)


@pytest.mark.parametrize("name", EXAMPLES)
def test_commands_run_and_draw_the_figure(here, name, monkeypatch):
    page = here / "examples" / name / "README.md"
    for arguments in commands(page):
        match arguments:
            case ["sweep", file, "--output", output]:  # in this process
                for point in load_sweep(here / file):
                    simulate(point.scenario(), here / output / point.name)
            case _:
                assert dlion(monkeypatch, *arguments) == 0, arguments
    (figure,) = re.findall(r"!\[.+\]\((.+)\)", page.read_text())
    assert [file.name for file in here.glob("*.png")] == [figure]


def test_all_examples_are_listed_and_need_no_download():
    page = (ROOT / "examples" / "README.md").read_text()
    assert sorted(re.findall(r"\]\((\w+)/README\.md\)", page)) == EXAMPLES
    for name in EXAMPLES:
        scenario = yaml.safe_load((ROOT / "examples" / name / "scenario.yaml").read_text())
        assert scenario["workload"]["dataset"] == "digits"
        assert scenario["name"] == name
