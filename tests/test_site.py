"""The site is built without a warning, of all pages, and shows them without a network."""

import logging
import re

import pytest

from tests.pages import PAGES, ROOT, place

pytest.importorskip("mkdocs", reason="needs the extra docs")
pytest.importorskip("material", reason="needs the extra docs")
pytest.importorskip("mkdocstrings", reason="needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)  # what the handler of docstrings looks for modules in
        patch.setattr(logging.getLogger("mkdocs"), "handlers", [])
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_each_page_is_there(site):
    for page in PAGES:
        shown = place(page).removesuffix(".md").removesuffix("README").removesuffix("index")
        assert (site / shown / "index.html").exists(), page


def test_the_tutorial_is_a_page_with_its_figures(site):
    tutorial = (site / "examples" / "tutorial" / "index.html").read_text()
    figures = re.findall(r'src="([^"]+\.png)"', tutorial)
    assert figures
    assert all((site / "examples" / "tutorial" / figure).resolve().is_file() for figure in figures)
    assert 'href="examples/tutorial/"' in (site / "index.html").read_text()


def test_nothing_is_loaded_from_elsewhere(site):
    for file in site.rglob("*.html"):
        fetched = re.findall(r"<(?:script|img|iframe)[^>]* src=\"([^\"]+)|<link[^>]* href=\"([^\"]+)", file.read_text())
        assert not [one for pair in fetched for one in pair if re.match(r"(https?:)?//", one)], file


def test_the_diagram_has_the_names_of_its_source(site):
    source, drawn = ((ROOT / "docs" / f"architecture.{ending}").read_text() for ending in ("mmd", "svg"))
    boxes = re.findall(r'\["([^"]+)"\]|\(\[([^"\]]+)\]\)|\[\("([^"]+)"\)\]', source)
    named = {word for box in boxes for word in re.findall(r"[A-Za-z]{3,}", " ".join(box).replace("<br/>", " "))}
    assert {"Worker", "Mininet", "SimPy", "Recorder", "YAML", "results"} <= named
    assert named <= set(re.findall(r"[A-Za-z]{3,}", " ".join(re.findall(r">([^<]+)<", drawn))))
    assert (site / "docs" / "architecture.svg").is_file()


def test_bars_in_tables_are_escaped(site):
    start = (site / "index.html").read_text()
    assert "<code>--device auto|cpu|cuda</code>" in start
    assert "<code>dlion export RUNS... -o DIR --to csv|tensorboard|trace</code></td>" in start


def test_the_python_api_is_shown(site):
    page = (site / "docs" / "api" / "index.html").read_text()
    named = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert {"dlion_sim.simulate", "dlion_sim.results.Run", "dlion_sim.protocol.choices.Exchange"} <= set(named)
    assert not [name for name in named if f'id="{name}"' not in page]
    assert 'id="dlion_sim.protocol.choices.Exchange.outgoing"' in page
