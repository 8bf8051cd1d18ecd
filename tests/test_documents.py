"""Documents: links, layout, and agreement with the package."""

import re
import tomllib
from itertools import pairwise
from textwrap import dedent

import pytest
import yaml

from dlion_sim.live import handshake
from dlion_sim.scenario import from_data, tariff
from tests.pages import PAGES, ROOT, place, without_blocks

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_links_of_pages_exist(page):
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+(:\d+)?(/[\w./?=&%+~#-]*)?", target), target
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_relative_to(ROOT), target
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def links(page):
    """What a page's text points to, pictures too."""
    text = re.sub(r"`[^`\n]*`", "", without_blocks(page))
    return re.findall(r"\]\(([^)\s]+)[^)]*\)", text)


def anchors(page):
    """Of each heading, as GitHub has it, and so does the site."""
    found = []
    for heading in re.findall(r"^#+ (.*)$", without_blocks(page), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading).lower()).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_lists_render_alike_everywhere(page):
    """GitHub takes lists behind a line of text for lists, and less than four spaces as inside one; others do not."""
    lines = ["", *without_blocks(page).splitlines()]
    for before, line in pairwise(lines):
        item = re.match(r"( *)([-*]|\d+\.) ", line)
        assert not item or len(item[1]) % 4 == 0, line
        assert not item or not before or before.startswith(" ") or re.match(r"([-*]|\d+\.) ", before), line
    assert not re.search(r"^ {1,3}```", page.read_text(), re.MULTILINE)


def test_pictures_in_svg_are_small():
    pictures = [*ROOT.glob("docs/**/*.svg"), *ROOT.glob("results/[!r]*/*.svg"), *ROOT.glob("examples/**/*.svg")]
    assert pictures
    assert {place(each): size for each in pictures if (size := each.stat().st_size) > 150_000} == {}


def test_the_readme_links_every_page():
    readme = (ROOT / "README.md").read_text()
    beside = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "CITATION.cff"]
    pages = {page.relative_to(ROOT).as_posix() for page in beside} - {"README.md"}
    assert pages == {page for page in pages if f"]({page})" in readme}


def test_the_citation_agrees_with_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert [(each["year"], each["authors"][0]["family-names"]) for each in citation["references"]] == [
        (2021, "Hong"),
        (2019, "Hong"),
    ]


def test_the_changelog_has_the_version_and_wire_format():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert PROJECT["version"] in changelog
    assert f"`{handshake._MAGIC.decode()}`" in changelog


def test_the_shown_oracle_test_passes():
    (code,) = re.findall(r"^ +```python\n(.*?)^ +```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    shown: dict = {}
    exec(dedent(code), shown)
    shown["test_it_is_baseline"]()


def test_the_shown_scenario_with_prices_is_valid():
    (text,) = re.findall(r"```yaml\n(name: .*?)```", (ROOT / "docs" / "cost.md").read_text(), re.DOTALL)
    prices = tariff(from_data(yaml.safe_load(text)))
    assert prices["per_hour"] == [3.06, 3.06, 12.24, 0.12]
    assert prices["egress"]["home"] == {"east": 0, "west": 0}
