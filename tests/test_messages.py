"""Messages of the package need no checkout, and named extras exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
SHIPPED = [*(ROOT / "dlion_sim").rglob("*.py"), *(ROOT / "scenarios").rglob("*.yaml")]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "emulation").iterdir()]
ONLY_IN_A_CHECKOUT = re.compile(
    r"docs/|\w\.md\b|\.sh\b|README|CONTRIBUTING|\bmake (setup|system|lint|test|quickstart)\b"
    r"|python -m (benchmarks|emulation|tests)\b"
)

WRITTEN = {'PAGE = "README.md"'}
"""What the package itself writes."""


def extras(files: list[Path]) -> set[str]:
    """Those that files say how to install."""
    texts = (file.read_text() for file in files if file.is_file())
    return {name for text in texts for names in re.findall(r"dlion-sim\[([^]]*)\]", text) for name in names.split(",")}


@pytest.mark.parametrize("files", [SHIPPED, PAGES], ids=["messages", "pages"])
def test_every_extra_is_documented(files):
    assert extras(files) == EXTRAS - {"dev", "docs", "release"}


def test_setup_installs_extras():
    setup, package = re.findall(r"'\.\[([^]]*)\]'", (ROOT / "Makefile").read_text())
    assert "dev" in setup.split(",")
    assert {*setup.split(","), package} <= EXTRAS


def test_shipped_texts_do_not_refer_to_a_checkout():
    lines = [(file.name, line) for file in SHIPPED for line in file.read_text().splitlines()]
    assert not [each for each in lines if ONLY_IN_A_CHECKOUT.search(each[1]) and each[1] not in WRITTEN]


@pytest.mark.parametrize(
    "words", ["see docs/time.md", "run `make setup`", "python -m emulation.measure", "emulation/setup.sh"]
)
def test_references_to_a_checkout_are_found(words):
    assert ONLY_IN_A_CHECKOUT.search(words)
