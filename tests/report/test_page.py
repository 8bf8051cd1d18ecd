"""Pages are self-contained and reproducible, and names in their data are never markup."""

import json
import re
from html.parser import HTMLParser

import pytest

from dlion_sim.errors import InputError
from dlion_sim.report import page, write_page
from dlion_sim.report.page import Section, embedded, render

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "</script x",
    "\"' onload='alert(1)",
    "&lt;b&gt; &amp; ]]>",
    "n" * 300,
    "שלום עולם",
    "line\u2028separator",
    "a\\u003cb",
]
SECTIONS = [Section("one", "First & foremost", "headline", 'It is "so"')]


class Markup(HTMLParser):
    """The elements of a page, the attributes of all of them, and the text of the title."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts = ["page"], [], {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.texts[self.tags[-1]] = self.texts.get(self.tags[-1], "") + data


@pytest.fixture
def without_library(monkeypatch):
    """Without Plotly, which is long."""
    monkeypatch.setattr("dlion_sim.report.page.plotly_script", lambda: "var Plotly = {};")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_only_data(name, without_library):
    plain, hostile = (
        render(title, SECTIONS, {"name": title, title: [title]}, ["run/headline.js"]) for title in ("a", name)
    )
    assert Markup(hostile).tags == Markup(plain).tags
    assert Markup(hostile).texts["title"].strip() == name
    told = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile, re.DOTALL)
    assert json.loads(told[1]) == {"name": name, name: [name]}
    assert not set("<>&") & set(told[1])


def test_nan_and_infinity_are_null():
    assert json.loads(embedded({"a": [float("nan"), float("inf"), 1.5]})) == {"a": [None, None, 1.5]}


def test_nothing_is_loaded(without_library):
    markup = Markup(render("a", SECTIONS, {}, ["run/headline.js"]))
    assert not {"link", "img", "iframe", "object", "base", "form"} & set(markup.tags)
    assert all(value.startswith("#") for name, value in markup.attributes if name in ("src", "href"))
    assert ("http-equiv", "Content-Security-Policy") in markup.attributes
    policy = next(value for name, value in markup.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy


def test_the_same_data_give_the_same_bytes(without_library):
    first, second = (render("a", SECTIONS, {"b": [1.5, None]}, ["run/headline.js"]) for _ in range(2))
    assert first == second


def test_end_tags_in_the_library_are_escaped(monkeypatch):
    plotly = pytest.importorskip("plotly.offline")
    page.plotly_script.cache_clear()
    monkeypatch.setattr(plotly, "get_plotlyjs", lambda: 'var a = "</script>", b = "</SCRIPT >";')
    assert page.plotly_script() == r'var a = "<\/script>", b = "<\/SCRIPT >";'
    page.plotly_script.cache_clear()


def test_only_pages_are_replaced(tmp_path, without_library):
    page, file = render("a", SECTIONS, {}, []), tmp_path / "page.html"
    write_page(page, file)
    write_page(page, file)
    file.write_text("<!doctype html><title>mine</title>")
    with pytest.raises(InputError, match="is no report"):
        write_page(page, file)
    assert "mine" in file.read_text()
    write_page(page, file, force=True)
    assert file.read_text() == page
