"""Runs as TensorBoard's event files."""

from __future__ import annotations

from pathlib import Path

from dlion_sim.analysis.export.folder import new_folder
from dlion_sim.errors import InputError
from dlion_sim.results import Run, run_names

_OF_ITERATIONS = ("loss", "batch_size", "staleness", "compute_seconds", "wait_seconds")


def export_tensorboard(runs: tuple[Run, ...], folder: Path) -> None:
    """Write the event files of each run to a folder of its name in `folder`, which is new or empty.

    Scalars are named quantity/worker, and accuracy/mean, or that of another metric; what was measured on validation
    samples is validation_accuracy. Steps are iterations; "wall" times are those of the run's clock, in seconds. Raises
    InputError where the package `tensorboard` is missing, a run cannot be read or the folder cannot be used.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "event files need the package tensorboard", allowed="pip install 'dlion-sim[tensorboard]'"
        ) from None

    new_folder(folder)
    for name, run in zip(run_names([run.folder for run in runs]), runs, strict=True):
        names = [worker.replace("/", "-") for worker in run.manifest["workers"]]
        metric = run.metric.name if run.evaluated_on == "test" else f"{run.evaluated_on}_{run.metric.name}"
        evaluations = run.evaluations()
        evaluations[metric] = evaluations[run.metric.key]
        iterations = run.iterations()
        means = evaluations.groupby("virtual_time", as_index=False)[["iteration", metric]].mean()
        with SummaryWriter(str(folder / name)) as writer:

            def add(tag: str, step: float, time: float, value: float, writer: SummaryWriter = writer) -> None:
                writer.add_scalar(tag, value, round(step), walltime=time)

            for time, step, value in means[["virtual_time", "iteration", metric]].to_numpy().tolist():
                add(f"{metric}/mean", step, time, value)
            for table, columns in ((evaluations, (metric,)), (iterations, _OF_ITERATIONS)):
                for column in columns:
                    known = table.dropna(subset=column)
                    rows = known[["worker", "iteration", "virtual_time", column]].to_numpy().tolist()
                    for worker, step, time, value in rows:
                        add(f"{column}/{names[int(worker)]}", step, time, value)
