"""`dlion export RUNS... --to FORMAT -o FOLDER`: exports runs to other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dlion_sim.cli.options import Quiet


class Format(StrEnum):
    """Formats of exports."""

    CSV = "csv"
    TENSORBOARD = "tensorboard"
    TRACE = "trace"


def export(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders with runs below.", show_default=False)],
    to: Annotated[
        Format,
        typer.Option(
            help="Tables; event files for TensorBoard (extra tensorboard); or a timeline for Perfetto and Chrome.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="A new or empty folder.", show_default=False)],
    quiet: Quiet = False,
) -> None:
    """Export runs to CSV files, TensorBoard event files or trace files."""
    from dlion_sim.analysis.export import export_csv, export_tensorboard, export_trace
    from dlion_sim.results import Frames

    exports = {Format.CSV: export_csv, Format.TENSORBOARD: export_tensorboard, Format.TRACE: export_trace}
    exports[to](Frames.of(runs).runs, output)
    if not quiet:
        print(f"exported: {output}")
