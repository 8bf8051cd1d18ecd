"""How far the simulator is from the emulator on every scenario of a folder, and how that is distributed over them.

A scenario whose comparison is in the output folder is not run again; one that was interrupted or failed is. Needs root
and Mininet, and a machine without other work.
"""

from __future__ import annotations

import argparse
import math
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
from dlion_sim.results.atomic import json_bytes, write
from dlion_sim.scenario import Scenario, dump, load
from dlion_sim.studies.validation import DOCUMENT, validate
from emulation.distribution import FIGURES, markdown, of_further
from emulation.further import FURTHER

SCENARIO, PROBLEM = "scenario.yaml", "problem.txt"
"""What was run, and why it came to nothing."""
TABLE, REPORT = "fidelity.csv", "fidelity.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, print and write the table, and return how to exit."""
    options = _parsed(arguments)
    try:
        scenarios = scenarios_in(options.folder)
        with Interrupts() as interrupts:
            have_failed = run_missing(scenarios, options.output, options.also, interrupts.asked)
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
    return FAILED if have_failed else 0


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m emulation.validate", description=__doc__)
    parser.add_argument("folder", type=Path, help="Holds the scenarios, *.yaml.")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Where runs and the table go.")
    parser.add_argument(
        "--also",
        nargs="+",
        choices=FURTHER,
        default=[],
        help="What else to compare: simulations whose bandwidths are up to 1 %% off; another emulation; a simulation "
        "packet by packet, with queues as they are emulated; one by flows without queues, the default.",
    )
    return parser.parse_args(arguments)


def scenarios_in(folder: Path) -> Mapping[str, Scenario]:
    """By the names of their files.

    Raises InputError where there are none, or one is not valid or of another metric: tolerances are of accuracy.
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


def run_missing(
    scenarios: Mapping[str, Scenario], output: Path, further: Sequence[str], interrupted: Callable[[], bool]
) -> bool:
    """Validate each scenario that has no comparison in its folder of `output`, then those `further` ones that it lacks,
    until interrupted; whether any has failed.

    Raises InputError where a folder holds what another scenario of that name came to, or this machine cannot emulate.
    """
    lacking = {name: _lacking(scenario, output / name, further) for name, scenario in scenarios.items()}
    missing = [name for name, lacks in lacking.items() if lacks]
    print(f"{len(missing)} of {len(scenarios)} scenarios to run", file=sys.stderr)
    if any(DOCUMENT in lacks for lacks in lacking.values()):
        check_requirements()
    have_failed = False
    for number, name in enumerate(missing, 1):
        scenario, folder = scenarios[name], output / name
        print(f"{number} of {len(missing)}: {name}", file=sys.stderr)
        if DOCUMENT in lacking[name]:
            _run(scenario, folder, interrupted)
        for each in further:
            if (folder / DOCUMENT).exists() and each in lacking[name] and not interrupted():
                _run_further(each, scenario, folder, interrupted)
        have_failed |= bool(_lacking(scenario, folder, further))
        if interrupted():
            break
    return have_failed


def _lacking(scenario: Scenario, folder: Path, further: Sequence[str]) -> list[str]:
    """What a scenario's folder does not hold yet."""
    of = folder / SCENARIO
    if of.exists() and of.read_text() != dump(scenario):
        raise InputError("holds another scenario's runs", file=folder, allowed="those of this one; or another --output")
    if not (folder / DOCUMENT).exists():
        return [DOCUMENT, *further]
    return [name for name in further if not _file_of(folder, name).exists()]


def _file_of(folder: Path, further: str) -> Path:
    return folder / f"{further}.json"


def _run_further(name: str, scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> None:
    """Leaves a comparison, or says what the problem was."""
    try:
        found = FURTHER[name](scenario, folder, interrupted)
    # Whatever goes wrong with one, the others are still to be run.
    except Exception as error:
        if not interrupted():
            print(f"  {name}: {error}", file=sys.stderr)
    else:
        known = {figure: value if math.isfinite(value) else None for figure, value in found.items()}
        write(_file_of(folder, name), json_bytes(known))


def _run(scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> None:
    """Leaves either a comparison or what the problem was, but neither if interrupted."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / SCENARIO, dump(scenario).encode())
    (folder / PROBLEM).unlink(missing_ok=True)
    for name in FURTHER:  # These are of runs that are replaced.
        _file_of(folder, name).unlink(missing_ok=True)
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
    figures = [*FIGURES, *(column for name in FURTHER for column in of_further(name))]
    table = pd.DataFrame(rows, columns=["scenario", "system", "workers", *figures, "late", "problem"])
    return table.astype(dict.fromkeys([*figures, "late"], float))


def _row(name: str, scenario: Scenario, folder: Path) -> dict[str, Any]:
    about = {"scenario": name, "system": scenario.system.name, "workers": len(scenario.cluster.workers)}
    if (folder / DOCUMENT).exists():
        found = msgspec.json.decode((folder / DOCUMENT).read_bytes())
        return {**about, **found["verdict"], **_further(folder), "late": found["late"], "problem": ""}
    problem = folder / PROBLEM
    return {**about, "problem": f"failed: {problem.read_text()}" if problem.exists() else "not run"}


def _further(folder: Path) -> dict[str, float | None]:
    """What else is known of it, by columns."""
    known: dict[str, float | None] = {}
    for name in FURTHER:
        file = _file_of(folder, name)
        verdict = msgspec.json.decode(file.read_bytes(), type=dict[str, float | None]) if file.exists() else {}
        known |= {column: verdict.get(figure) for column, figure in zip(of_further(name), FIGURES, strict=True)}
    return known


if __name__ == "__main__":
    sys.exit(main())
