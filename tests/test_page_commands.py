"""Each command that a page shows is one: it exists, and takes these options; the scenario that it runs can be run.

Those that can be are run, small, by `tests/test_page_runs.py` and by the pages' own tests.
"""

import importlib.util
import re

import pytest
import typer

from dlion_sim.cli.main import app
from dlion_sim.errors import InputError
from dlion_sim.scenario import find, load
from tests.pages import PAGES, ROOT, blocks, commands, mentions, place, without_blocks

GENERATED = ROOT / "docs" / "commands.md"  # which has usages
DLION = typer.main.get_command(app)
WITH_COMMANDS = [page for page in PAGES if commands(page) and page != GENERATED]


def found(arguments):
    """The command that arguments name, and the rest of them."""
    command, rest = DLION, list(arguments)
    while inner := getattr(command, "commands", {}):
        if not rest or rest[0] not in inner:
            return command, rest
        command = inner[rest.pop(0)]
    return command, rest


def options(command):
    return {"--help", "-h"} | {name for each in command.params for name in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=place)
def test_commands_are_valid(page):
    for arguments in commands(page):
        command, rest = found(arguments)
        assert not getattr(command, "commands", {}), arguments
        with command.make_context(arguments[0], rest):
            pass


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_mentioned_commands_exist(page):
    for arguments in mentions(page):
        command, rest = found(arguments)
        group = getattr(command, "commands", {})
        assert not group or not rest or rest[0].startswith("-") or rest == ["systems"], arguments
        named = {word.partition("=")[0] for word in rest if re.match("--?[a-z]", word)}
        assert named <= options(command), arguments


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=place)
def test_shipped_scenarios_are_valid_with_the_overrides(page):
    for arguments in commands(page):
        command, rest = found(arguments)
        with command.make_context(arguments[0], rest) as context:
            name, overrides = context.params.get("scenario"), context.params.get("overrides")
        if name is None or overrides is None:
            continue
        try:
            file = find(ROOT / name if name.endswith(".yaml") else name)
        except InputError:
            continue  # the reader's own
        assert load(file, overrides).name


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_other_programs_of_this_repository_exist(page):
    text = page.read_text()
    for module in re.findall(r"python -m ([\w.]+\w)", text):
        assert module.endswith("NAME") or importlib.util.find_spec(module), module
    for script in re.findall(r"(?:python |^    )((?:docs|emulation|examples)/[\w/]+\.(?:py|sh))", text, re.MULTILINE):
        assert (ROOT / script).exists(), script
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shown = "\n".join([*re.findall(r"`([^`]+)`", without_blocks(page)), *re.findall(r"^    (.*)", text, re.MULTILINE)])
    for target in re.findall(r"^make ([a-z]+)", "\n".join([shown, *blocks(page, "sh")]), re.MULTILINE):
        assert target in targets, target
