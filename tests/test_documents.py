"""The documents beside the README: what they point to is there, and they agree with the package."""

import re
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from dlion_sim.live import frames
from dlion_sim.scenario import from_data, tariff

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "emulation" / "README.md"])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_points_to_is_there(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_readme_points_to_every_page():
    readme = (ROOT / "README.md").read_text()
    beside = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "CITATION.cff"]
    pages = {page.relative_to(ROOT).as_posix() for page in beside} - {"README.md"}
    assert pages == {page for page in pages if f"]({page})" in readme}


def test_the_citation_is_of_this_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert [(each["year"], each["authors"][0]["family-names"]) for each in citation["references"]] == [
        (2021, "Hong"),
        (2019, "Hong"),
    ]


def test_the_changelog_tells_of_this_version_and_wire_format():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert PROJECT["version"] in changelog
    assert f"`{frames._MAGIC.decode()}`" in changelog


def test_the_oracle_test_that_is_shown_passes():
    (code,) = re.findall(r"^ +```python\n(.*?)^ +```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    shown: dict = {}
    exec(dedent(code), shown)
    shown["test_it_is_baseline"]()


def test_the_scenario_with_prices_is_one():
    (text,) = re.findall(r"```yaml\n(name: .*?)```", (ROOT / "docs" / "cost.md").read_text(), re.DOTALL)
    prices = tariff(from_data(yaml.safe_load(text)))
    assert prices["per_hour"] == [3.06, 3.06, 12.24, 0.12]
    assert prices["egress"]["home"] == {"east": 0, "west": 0}
