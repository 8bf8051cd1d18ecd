"""A self-contained HTML page: its markup, style, data and scripts, and the file it is written to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.figures.style import PALETTE
from dlion_sim.files import opened
from dlion_sim.results.atomic import write

MARK = '<meta name="generator" content="dlion_sim report">'
"""Identifies a page among other files."""
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""Nothing is loaded; blob: is for saving pictures of figures."""
_OF_SERVED, _WATCHING = "; connect-src 'self'", ("watch.js",)
"""Added to the policy and the scripts of a served page."""
_SHARED = ("core.js", "dom.js", "units.js", "theme.js", "switch.js", "figure.js", "time.js")
"""The scripts of every page, in the order of their dependencies."""
_STYLES = ("page.css", "run.css", "many.css", "print.css")
_ON_DARK = {"#000000": "#f4f5f7", "#0072B2": "#3a9bdc"}
"""Substitutes for colours of the palette that have no contrast on a dark background."""
_SUFFIXES = (".html", ".htm")
_MARK_WITHIN = 1000
"""The first bytes of a page, which contain `MARK`."""


@dataclass(frozen=True)
class Section:
    """A section of a page, which a view in the scripts fills from the data."""

    name: str
    """The anchor in the page's address: letters and dashes."""
    heading: str
    view: str
    """The name of the view, as registered by `report.view`."""
    note: str = ""
    """A description below the heading."""


def render(
    title: str,
    sections: Sequence[Section],
    data: Mapping[str, Any],
    scripts: Sequence[str],
    *,
    is_served: bool = False,
) -> str:
    """The HTML of a page, the same for the same arguments.

    Args:
        title: Any text.
        sections: In order.
        data: The views' data: plain values; NaN and infinities become null.
        scripts: The files in `assets/` with the views, loaded after the shared ones.
        is_served: Whether it requests newer data from its server.

    Raises:
        InputError: The package with the plotting library is not installed.
    """
    heading = escape(title)
    links = "".join(f'<li><a href="#{each.name}">{escape(each.heading)}</a></li>' for each in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}{_OF_SERVED * is_served}">
{MARK}
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{heading}</title>
<style>
{_palette()}
{"".join(map(_asset, _STYLES))}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<h1 dir="auto">{heading}</h1>
<div id="tools"></div>
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<noscript><p>This page needs JavaScript for its figures.</p></noscript>
<main id="content" tabindex="-1">
{"".join(map(_markup, sections))}</main>
<script type="application/json" id="data">{embedded(data)}</script>
<script>{plotly_script()}</script>
<script>
{"".join(map(_asset, (*_SHARED, *scripts, *_WATCHING * is_served)))}report.start();
</script>
</body>
</html>
"""


def embedded(data: Mapping[str, Any]) -> str:
    """JSON for an HTML element: escaped so that no text in it is markup."""
    text = msgspec.json.encode(data).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _markup(section: Section) -> str:
    note = f'<p class="note">{escape(section.note)}</p>\n' if section.note else ""
    return f"""<section id="{section.name}" data-view="{section.view}" aria-labelledby="{section.name}-heading">
<h2 id="{section.name}-heading">{escape(section.heading)}</h2>
{note}<div class="body"></div>
</section>
"""


def _palette() -> str:
    """The colours of all figures as CSS variables: --series-0 and on."""
    colours = (
        f"--series-{number}: light-dark({colour}, {_ON_DARK.get(colour, colour)});"
        for number, colour in enumerate(PALETTE)
    )
    return f":root {{ {' '.join(colours)} }}"


@cache
def _asset(name: str) -> str:
    return (files("dlion_sim.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def plotly_script() -> str:
    """Plotly's JavaScript for an HTML script element. Raises InputError if the package `plotly` is missing."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError("reports need the package plotly", allowed="pip install 'dlion-sim[report]'") from None

    # "</script" in one of its strings would end the element.
    script: str = re.sub("</(?=script)", r"<\\/", get_plotlyjs(), flags=re.IGNORECASE)
    return script


def check_free(file: Path, *, force: bool = False) -> None:
    """Raise InputError if a page cannot be written to `file`.

    That is if it is no .html file, its folder is missing, or a file that is no page is there, unless `force` is set.
    """
    if file.is_dir():
        raise InputError("is a folder", file=file, allowed="an .html file")
    if file.suffix.lower() not in _SUFFIXES:
        raise InputError("is no .html file", file=file, allowed="a page, .html; `plot` makes figures, also .pdf")
    if not file.parent.is_dir():
        raise InputError("there is no such folder", file=file.parent)
    if file.exists() and not force and not _is_page(file):
        raise InputError("exists and is no report", file=file, allowed="another file, or `force`")


def _is_page(file: Path) -> bool:
    with opened(file) as content:
        return MARK.encode() in content.read(_MARK_WITHIN)


def write_page(page: str, file: Path, *, force: bool = False) -> None:
    """Write a page to `file` atomically, replacing an older page. Raises InputError as `check_free`, and OSError."""
    check_free(file, force=force)
    write(file, page.encode())
