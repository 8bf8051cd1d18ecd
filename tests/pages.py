"""The repository's pages, and what they show: blocks of code, and commands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "emulation/*.md", "examples/**/*.md", "results/*.md", "results/*/*.md")
    for page in ROOT.glob(pattern)
    if not page.is_relative_to(ROOT / "results" / "runs")
)
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_MATRIX = "Mbps,east,west,north\neast,,40,12.5\nwest,25,,8\nnorth,10,8,\n"
_IPERF3 = {
    "start": {"test_start": {"protocol": "TCP"}},
    "end": {"sum_received": {"bits_per_second": 4e7}, "streams": [{"sender": {"min_rtt": 60_000}}]},
}
_PLACEHOLDERS = {"FILE_OR_NAME": "quickstart", "SCENARIO": "quickstart", "KIND": "accuracy", "COMMAND": "systems"}


def place(page: Path) -> str:
    """Where a page is, for the names of tests."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The texts of a page's fenced blocks in a language."""
    return [dedent(text) for _, written, text in _FENCE.findall(page.read_text()) if written == language]


def without_blocks(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def commands(page: Path) -> list[list[str]]:
    """The words behind `dlion` of each command in a page's blocks, fenced or indented, to be typed as they stand."""
    shown = [
        line.removeprefix("$ ")
        for language in ("console", "sh")
        for text in blocks(page, language)
        for line in joined(text)
    ]
    shown += [line.strip() for line in joined(without_blocks(page)) if line.startswith("    ")]
    return [words(line) for line in shown if re.match(r"(sudo .*)?dlion ", line)]


def mentions(page: Path) -> list[list[str]]:
    """The words behind `dlion` of each command that a page's text names, which may be a part of one."""
    return [words(text) for text in re.findall(r"`((?:sudo [^`]*)?dlion [^`]+)`", without_blocks(page))]


def joined(text: str) -> list[str]:
    """The lines of a text, continued ones as one."""
    return re.sub(r" *\\\n *", " ", text).splitlines()


def words(line: str) -> list[str]:
    """What a shell makes of a command without its comment; of alternatives the first, and of placeholders one."""
    line = re.sub(r"(\w+)(\\?\|\w+)+", r"\1", re.sub(r"^(sudo .*?)?dlion ", "", line))
    return [_PLACEHOLDERS.get(word, word.strip("[]")) for word in shlex.split(line, comments=True)]


def put_measurements(folder: Path) -> None:
    """The files of measured links that pages name: matrices, a trace with several series, iperf3's results."""
    (folder / "bandwidth.csv").write_text(_MATRIX)
    (folder / "rtt.csv").write_text(_MATRIX.replace("Mbps", "ms"))
    (folder / "sites.csv").write_text(blocks(ROOT / "docs" / "recommend.md", "csv")[0])
    (folder / "links.csv").write_text("time_s,trace,mbit_per_s\n0,norway_bus_1,10\n1,norway_bus_1,5\n2,other,1\n")
    (folder / "iperf3-results").mkdir()
    for name in ("east-to-west.json", "west-to-east.json"):
        (folder / "iperf3-results" / name).write_text(json.dumps(_IPERF3))
