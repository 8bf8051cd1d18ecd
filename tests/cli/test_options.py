"""Only the command line names options; the rest of the package names arguments of its functions."""

import ast
import re
from pathlib import Path

import typer

import dlion_sim
from dlion_sim.cli.conventions import with_options
from dlion_sim.cli.main import app

PACKAGE = Path(dlion_sim.__file__).parent
STARTS_NODES = {"live/nodes.py", "live/run_nodes.py", "calibration/mesh.py", "emulation/emulate.py"}
COMPOSES_COMMANDS = {*STARTS_NODES, "results/labels.py"}
"""They start nodes by their command, or tell the one that continues a run."""


def options() -> set[str]:
    commands = typer.main.get_command(app).commands
    return {
        name
        for command in (*commands.values(), *commands["plot"].commands.values())
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    }


def strings(file: Path) -> list[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_only_the_command_line_names_options_and_commands():
    names = options()
    assert {"--force", "--peers", "--set", "--x"} <= names
    commands = re.compile(rf"\bdlion ({'|'.join(typer.main.get_command(app).commands)})\b")
    named = {
        (where, text)
        for file in PACKAGE.rglob("*.py")
        if not (where := file.relative_to(PACKAGE).as_posix()).startswith("cli/") and where not in COMPOSES_COMMANDS
        for text in strings(file)
        if names & {*re.findall(r"--[a-z][a-z-]*", text)} or commands.search(text)
    }
    assert not named


def test_messages_name_options_in_place_of_arguments():
    assert with_options("`addresses`: 2 addresses; allowed: `force`") == "--peers: 2 addresses; allowed: --force"
    assert with_options("`ray start --head` and `what` else") == "`ray start --head` and `what` else"
    assert set(map(with_options, ("`overrides`", "`rank`", "`delays`", "`senders`", "`x`", "`output`"))) <= options()
