"""Files with a part of a scenario, from what was measured."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from dlion_sim.errors import InputError

_Output = typer.Option("--output", "-o", metavar="FILE", help="The YAML file to write.", show_default=False)
BlockFile = Annotated[Path, _Output]


def refuse_unless_free(*files: Path) -> None:
    """Raise InputError unless each can be written anew."""
    for file in files:
        if file.exists():
            raise InputError("is there already", file=file, allowed="a new file")
        if not file.parent.is_dir():
            raise InputError("is in no folder that there is", file=file, allowed="a new file in a folder")


def write_block(output: Path, block: dict[str, Any], about: str, further: Iterable[str] = ()) -> None:
    """The block, below a line on where it is from and `further` ones."""
    from dlion_sim.results.atomic import write
    from dlion_sim.yaml_text import write_yaml

    today = datetime.now(UTC).date().isoformat()
    lines = [f"Measured on {platform.node()}, written {today}: {about}.", *further]
    write(output, ("".join(f"# {line}\n" for line in lines) + write_yaml(block)).encode())
