"""How far the simulator is from the emulator on every scenario of a folder, and how that is distributed over them.

A scenario whose comparison is in the output folder is not run again; one that was interrupted or failed is. Needs root
and Mininet, and a machine without other work.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from dlion_sim.assembly.workload import dataset_of
from dlion_sim.cli.conventions import BAD_INPUT, FAILED, INTERRUPTED
from dlion_sim.cli.progress import clock_bar, progress_bar
from dlion_sim.emulation import check_requirements
from dlion_sim.errors import InputError
from dlion_sim.interrupts import Interrupts
from dlion_sim.metric import ACCURACY
from dlion_sim.results import Run
from dlion_sim.results.atomic import write
from dlion_sim.scenario import Scenario, dump, load
from dlion_sim.validation import DOCUMENT, validate
from emulation.distribution import FIGURES, ITSELF, markdown

SCENARIO, PROBLEM = "scenario.yaml", "problem.txt"
"""What was run, and why it came to nothing."""
SENSITIVITY = "sensitivity.json"
"""By how much its simulations differ among themselves: see `emulation.sensitivity`."""
TABLE, REPORT = "fidelity.csv", "fidelity.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, print and write the table, and return how to exit."""
    options = parsed(arguments, program="emulation.validate", about=__doc__, output="Where runs and the table go.")
    try:
        scenarios = scenarios_in(options.folder)
        with Interrupts() as interrupts:
            run_missing(scenarios, options.output, interrupts.asked)
    except InputError as error:
        print(f"emulation.validate: {error}", file=sys.stderr)
        return BAD_INPUT
    table = table_of(scenarios, options.output)
    table.to_csv(options.output / TABLE, index=False)
    report = markdown(table)
    write(options.output / REPORT, report.encode())
    print(report, end="")
    if interrupts.asked():
        return INTERRUPTED
    return FAILED if table["problem"].any() else 0


def parsed(arguments: Sequence[str] | None, *, program: str, about: str | None, output: str) -> argparse.Namespace:
    """The `folder` of scenarios and the `output` that a script is given."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about)
    parser.add_argument("folder", type=Path, help="Holds the scenarios, *.yaml.")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help=output)
    return parser.parse_args(arguments)


def scenarios_in(folder: Path) -> Mapping[str, Scenario]:
    """By the names of their files.

    Raises InputError where there are none, or one is not valid or of another metric: the table's marks are of accuracy.
    """
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise InputError("holds no scenario", file=folder, allowed="a folder of *.yaml")
    scenarios = {file: load(file) for file in files}
    alike = {(str(each.workload.dataset), each.modules): (file, each) for file, each in scenarios.items()}
    for file, scenario in alike.values():
        metric = dataset_of(scenario).task.metric
        if metric != ACCURACY:
            allowed = f"one of {ACCURACY.name}; `dlion validate` takes any"
            raise InputError(f"is evaluated by {metric.name}", file=file, path="workload.dataset", allowed=allowed)
    return {file.stem: scenario for file, scenario in scenarios.items()}


def run_missing(scenarios: Mapping[str, Scenario], output: Path, interrupted: Callable[[], bool]) -> None:
    """Validate each scenario that has no comparison in its folder of `output`, until interrupted.

    Raises InputError where a folder holds what another scenario of that name came to, or this machine cannot emulate.
    """
    missing = [name for name, scenario in scenarios.items() if not _is_compared(scenario, output / name)]
    print(f"{len(missing)} of {len(scenarios)} scenarios to run", file=sys.stderr)
    if missing:
        check_requirements()
    for number, name in enumerate(missing, 1):
        print(f"{number} of {len(missing)}: {name}", file=sys.stderr)
        _run(scenarios[name], output / name, interrupted)
        if interrupted():
            return


def _is_compared(scenario: Scenario, folder: Path) -> bool:
    of = folder / SCENARIO
    if of.exists() and of.read_text() != dump(scenario):
        raise InputError("holds another scenario's runs", file=folder, allowed="those of this one; or another --output")
    return (folder / DOCUMENT).exists()


def _run(scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> None:
    """Leaves either a comparison or what the problem was, but neither if interrupted."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / SCENARIO, dump(scenario).encode())
    (folder / PROBLEM).unlink(missing_ok=True)
    try:
        done = validate(
            scenario,
            folder,
            force=True,
            interrupted=interrupted,
            simulating=progress_bar(scenario, quiet=False),
            emulating=clock_bar(scenario, quiet=False),
        )
        problem = _problem(done.simulated) or _problem(done.real)
    # Whatever goes wrong with one, the others are still to be run, and the table tells of it.
    except Exception as error:
        problem = str(error) or repr(error)
    if problem or interrupted():
        (folder / DOCUMENT).unlink(missing_ok=True)
    if problem and not interrupted():
        print(f"  {problem}", file=sys.stderr)
        write(folder / PROBLEM, problem.encode())


def _problem(run: Run) -> str:
    """Why a run is not what was asked for, if so."""
    way, summary = run.manifest["way"], run.summary or {}
    lost = [str(node["rank"]) for node in run.manifest.get("nodes", ()) if node["status"] != "completed"]
    if summary.get("status") != "completed" or summary["stopped_by"] == "stall":
        return f"{way}: {summary.get('status')}, {summary.get('stopped_by')}"
    return f"{way}: lost node {', '.join(lost)}" if lost else ""


def table_of(scenarios: Mapping[str, Scenario], output: Path) -> pd.DataFrame:
    """A row a scenario: what it is, the figures of its comparison, and why there are none if so."""
    rows = [_row(name, scenario, output / name) for name, scenario in scenarios.items()]
    table = pd.DataFrame(rows, columns=["scenario", "system", "workers", *FIGURES, *ITSELF, "late", "problem"])
    return table.astype(dict.fromkeys([*FIGURES, *ITSELF, "late"], float))


def _row(name: str, scenario: Scenario, folder: Path) -> dict[str, Any]:
    about = {"scenario": name, "system": scenario.system.name, "workers": len(scenario.cluster.workers)}
    if (folder / DOCUMENT).exists():
        found = msgspec.json.decode((folder / DOCUMENT).read_bytes())
        return {**about, **found["verdict"], **_itself(folder / SENSITIVITY), "late": found["late"], "problem": ""}
    problem = folder / PROBLEM
    return {**about, "problem": f"failed: {problem.read_text()}" if problem.exists() else "not run"}


def _itself(file: Path) -> dict[str, float | None]:
    """What is known of it, by columns."""
    found = msgspec.json.decode(file.read_bytes(), type=dict[str, float | None]) if file.exists() else {}
    return {column: found.get(name) for column, name in zip(ITSELF, FIGURES, strict=True)}


if __name__ == "__main__":
    sys.exit(main())
