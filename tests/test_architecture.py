"""The pages on the architecture agree with the code's files and imports."""

import re
from pathlib import Path

import pytest

from tests.test_imports import MAY_IMPORT

ROOT = Path(__file__).parents[1]
PAGE = "\n".join((ROOT / "docs" / page).read_text() for page in ("architecture.md", "internals.md"))
ROWS = [row for row in re.findall(r"^\|(.+)\|$", PAGE, re.MULTILINE) if not set(row) <= set("-| ")]
WORDS = {word for row in ROWS for word in re.findall(r"`([^`]+)`", row)}
PACKAGES = sorted(file.parent.relative_to(ROOT).as_posix() for file in (ROOT / "dlion_sim").rglob("*/__init__.py"))


def test_paths_in_tables_exist():
    paths = {word for word in WORDS if "/" in word and " " not in word}
    assert len(paths) > 100
    assert not [path for path in sorted(paths) if not (ROOT / path).exists()]


def test_places_in_the_dictionary_exist():
    """They are below the package."""
    dictionary = (ROOT / "docs" / "dictionary.md").read_text()
    places = set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", dictionary))
    assert len(places) > 40
    assert not [place for place in sorted(places) if not (ROOT / "dlion_sim" / place).exists()]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_named(package):
    assert f"{package}/" in WORDS


def test_every_module_is_named():
    modules = {file.relative_to(ROOT).as_posix() for file in (ROOT / "dlion_sim").glob("*.py")}
    assert modules <= WORDS


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_import_rules_are_documented(package):
    """In the last column of the package's row."""
    (row,) = (row for row in ROWS if row.startswith(f" `dlion_sim/{package}/` |") and row.count("|") == 2)
    assert set(re.findall(r"`([^`]+)`", row.rpartition("|")[2])) == MAY_IMPORT[package]
