"""The page of all commands is current."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_current():
    spec = importlib.util.spec_from_file_location("make_command_reference", DOCS / "make_command_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "commands.md").read_text() == module.reference(), "run: python docs/make_command_reference.py"
