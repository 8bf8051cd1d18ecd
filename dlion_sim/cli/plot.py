"""`dlion plot KIND RUNS... -o FILE`: figures from run folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dlion_sim.cli.conventions import print_early_ends
from dlion_sim.cli.options import Quiet, Runs, Target, seconds_of
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.analysis import Group
    from dlion_sim.results import Run

plot = typer.Typer(no_args_is_help=True)

OneRun = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)]
Output = Annotated[Path, typer.Option("--output", "-o", help="The picture: .png, .svg or .pdf.", show_default=False)]

Labels = Annotated[
    list[str] | None,
    typer.Option("--label", help="Label for the runs of each path, one per RUNS.", show_default=False),
]

Bands = Annotated[
    Literal["range", "interval"], typer.Option("--band", help="Range over seeds, or 95 % interval of the mean.")
]


@plot.callback()
def root() -> None:
    """Draw a figure from run folders; runs that differ only in their seed are one."""


@plot.command()
def accuracy(
    runs: Runs,
    output: Output,
    x: Annotated[
        Literal["time", "bytes", "iterations", "epochs", "cost"], typer.Option(help="Horizontal axis.")
    ] = "time",
    band: Bands = "range",
    labels: Labels = None,
    quiet: Quiet = False,
) -> None:
    """Accuracy, or another metric, over time: mean and band over seeds, a line per system, a panel per environment."""
    from dlion_sim.figures import plot_accuracies

    _done(plot_accuracies(_groups(runs, labels), output, x, band), quiet=quiet)


@plot.command()
def accuracy_at(
    runs: Runs,
    output: Output,
    time: Annotated[
        str | None, typer.Option("--at", help='E.g. "500 s"; by default the duration of the shortest run.')
    ] = None,
    labels: Labels = None,
    quiet: Quiet = False,
) -> None:
    """Accuracy, or another metric, at a time by environment and system, as grouped bars."""
    from dlion_sim.figures import plot_accuracy_at

    groups = _groups(runs, labels)
    at = seconds_of(time, "--at") if time else _shortest(groups)
    _done(plot_accuracy_at(groups, output, at), quiet=quiet)


@plot.command()
def time_to_accuracy(
    runs: Runs, output: Output, target: Target = None, labels: Labels = None, quiet: Quiet = False
) -> None:
    """Time to an accuracy, or another target, and the speed-up over Baseline, as grouped bars."""
    from dlion_sim.analysis import chosen_target
    from dlion_sim.figures import plot_time_to_accuracy

    groups = _groups(runs, labels)
    _done(plot_time_to_accuracy(groups, output, chosen_target(groups, target).value), quiet=quiet)


@plot.command()
def trade_off(runs: Runs, output: Output, labels: Labels = None, quiet: Quiet = False) -> None:
    """Final accuracy, or another metric, against bytes sent over the WAN, with the Pareto front."""
    from dlion_sim.figures import plot_trade_off

    _done(plot_trade_off(_groups(runs, labels), output), quiet=quiet)


@plot.command()
def batch_sizes(run: OneRun, output: Output, quiet: Quiet = False) -> None:
    """Batch sizes over time: the global one, and each worker's."""
    from dlion_sim.figures import plot_batch_sizes

    _done(plot_batch_sizes(_run(run), output), quiet=quiet)


@plot.command()
def links(
    run: OneRun,
    output: Output,
    senders: Annotated[
        list[str] | None,
        typer.Option(help="Only links from this worker or micro-cloud, e.g. east/0; repeatable.", show_default=False),
    ] = None,
    receivers: Annotated[
        list[str] | None, typer.Option(help="Only links to this one; repeatable.", show_default=False)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """N of Max-N and traffic of WAN links: over time, or above 8 workers maps of means."""
    from dlion_sim.figures import plot_links

    _done(plot_links(_run(run), output, senders or (), receivers or ()), quiet=quiet)


@plot.command()
def fct(runs: Runs, output: Output, labels: Labels = None, quiet: Quiet = False) -> None:
    """Distribution of messages' completion times; where packets may be lost, by variable and class of packets."""
    from dlion_sim.figures import plot_completion_times

    _done(plot_completion_times(_groups(runs, labels), output), quiet=quiet)


@plot.command()
def queues(run: OneRun, output: Output, quiet: Quiet = False) -> None:
    """Queues of links over time, and dropped and marked packets, of packet-level simulations."""
    from dlion_sim.figures import plot_queues

    _done(plot_queues(_run(run), output), quiet=quiet)


@plot.command()
def deviation(runs: Runs, output: Output, band: Bands = "range", labels: Labels = None, quiet: Quiet = False) -> None:
    """Worker deviation: the spread of the workers' accuracies (or other metric) over time."""
    from dlion_sim.figures import plot_deviation

    _done(plot_deviation(_groups(runs, labels), output, band), quiet=quiet)


@plot.command()
def online(runs: Runs, output: Output, band: Bands = "range", labels: Labels = None, quiet: Quiet = False) -> None:
    """Online (prequential) accuracy of a stream's samples over time, with drift."""
    from dlion_sim.figures import plot_online

    _done(plot_online(_groups(runs, labels), output, band), quiet=quiet)


@plot.command()
def availability(
    runs: Runs, output: Output, band: Bands = "range", labels: Labels = None, quiet: Quiet = False
) -> None:
    """Availability: machines up over time, accuracy (or other metric), and lost work."""
    from dlion_sim.figures import plot_availability

    _done(plot_availability(_groups(runs, labels), output, band), quiet=quiet)


@plot.command()
def timeline(
    run: OneRun,
    output: Output,
    begin: Annotated[
        str | None, typer.Option("--from", help="E.g. 10 s; by default when all machines are measured.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="By default 10 iterations of each worker later.")] = None,
    quiet: Quiet = False,
) -> None:
    """Computing, waiting and sending by worker, as a Gantt chart."""
    from dlion_sim.figures import plot_timeline

    window = (seconds_of(begin, "--from") if begin else None), (seconds_of(end, "--to") if end else None)
    _done(plot_timeline(_run(run), output, *window), quiet=quiet)


@plot.command()
def heatmap(
    runs: Runs,
    output: Output,
    show: Annotated[Literal["accuracy", "time", "speedup", "bytes"], typer.Option(help="What to show.")] = "accuracy",
    x: Annotated[str | None, typer.Option(help="The axis along the horizontal, e.g. bandwidth.")] = None,
    y: Annotated[str | None, typer.Option(help="The axis along the vertical, e.g. system.")] = None,
    target: Target = None,
    quiet: Quiet = False,
) -> None:
    """Heat map of a sweep over two of its axes."""
    from dlion_sim.analysis import chosen_target
    from dlion_sim.figures import plot_heatmap

    groups = _groups(runs)
    _done(plot_heatmap(groups, output, show, chosen_target(groups, target).value, x, y), quiet=quiet)


def _groups(paths: list[Path], labels: list[str] | None = None) -> list[Group]:
    from dlion_sim.analysis import group_runs, labelled, with_own_optimizers
    from dlion_sim.results import Frames

    def opened(paths: list[Path]) -> list[Group]:
        runs = Frames.of(paths).runs
        print_early_ends(runs)
        return with_own_optimizers(group_runs(runs))

    if not labels:
        return opened(paths)
    if len(labels) != len(paths):
        raise InputError(
            f"{len(labels)} labels for {len(paths)} path{'s' * (len(paths) > 1)}",
            file="--label",
            allowed="one for each",
        )
    if len(set(labels)) < len(labels):
        raise InputError("two labels are the same", file="--label", allowed="another one for each path")
    return [group for path, label in zip(paths, labels, strict=True) for group in labelled(opened([path]), label)]


def _run(folder: Path) -> Run:
    from dlion_sim.results import Run

    run = Run.open(folder)
    print_early_ends([run])
    return run


def _shortest(groups: list[Group]) -> float:
    """Duration of the shortest run (s)."""
    from dlion_sim.analysis.curves import mean_metric

    curves = [mean_metric(run) for group in groups for run in group.runs]
    return min((float(curve.index[-1]) for curve in curves if len(curve)), default=0.0)


def _done(file: Path, *, quiet: bool) -> None:
    if not quiet:
        print(f"plot: {file}")
