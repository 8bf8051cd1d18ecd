"""What `dlion recommend` prints: the candidates, and the results."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.box import HEAVY_HEAD
from rich.console import Console

from dlion_sim.cli.fitting import Fitted
from dlion_sim.errors import InputError, OwnCodeError
from dlion_sim.recommend import DOCUMENT, FIGURES, WINNER, Candidate, Study
from dlion_sim.recommend.data_placement import data_placement
from dlion_sim.results.numbers import duration, in_bytes, number, percent
from dlion_sim.results.run_folder import REPORT

_MOST_ROWS = 200
_BEST_SHOWN = 12


def print_candidates(study: Study) -> None:
    """Print the candidates, and the refused ones."""
    hourly = [] if study.is_own else ["an hour"]
    rows = [[*_named(each), *(number(each.per_hour) for _ in hourly)] for each in study.candidates[:_MOST_ROWS]]
    names = _headings(study)
    Console().print(Fitted([*names, *hourly], rows, numbers=hourly, names=len(names), box=HEAVY_HEAD))
    if len(study.candidates) > _MOST_ROWS:
        print(f"... and {len(study.candidates) - _MOST_ROWS} more")
    for refused in study.refused:
        print(f"{refused.name}: {refused.reason}")
    print(data_placement(study.scenario, own=study.is_own)["summary"])
    print_effort(study)
    print(f"{len(study.candidates)} candidates")


def print_refused(study: Study) -> None:
    """Print how many instances and candidates are refused, if any."""
    if study.refused:
        first = study.refused[0]
        why = f"{first.name}: {first.reason}"
        print(f"{len(study.refused)} refused, which --dry-run lists; the first is {why}", flush=True)


def print_effort(study: Study) -> None:
    """Print what was left out to fit into a wall time, if anything was to."""
    if study.effort:
        print(study.effort.summary, flush=True)


def print_time(study: Study, jobs: int, device: Literal["auto", "cpu", "cuda"], *, most: int, watch: float) -> None:
    """Print an upper bound of the wall time on this machine; for `most` and `watch` see `sweep.estimate`."""
    try:
        takes = study.takes(jobs, device, most=most, watch=watch)
    except (InputError, OwnCodeError) as error:
        print(f"the wall time is unknown: {error}", flush=True)
        return
    here = f"on this machine, {jobs} in parallel; the search eliminates most of them earlier"
    print(f"all candidates up to the {study.goal.bound}, with one seed, take {takes.text} {here}", flush=True)


def print_recommendation(study: Study, content: Mapping[str, Any], console: Console) -> None:
    """Print the best candidates, and the recommendation."""
    best = content["winner"] and content["winner"]["candidate"]
    shown = _shown(study, content)
    rows = [_row(study, each) for each in shown]
    names = _headings(study)
    numbers = ["time", *(["cost"] if any("money" in each for each in shown) else []), "WAN bytes", "bytes in all"]
    headings = [*names, *numbers, "seeds", "why not"]
    bold = [place for place, each in enumerate(shown) if each["candidate"] == best]
    title = f"{content['scenario']} to {content['target']['value']:g} {content['target']['metric']}, {study.goal.bound}"
    if any(each["seeds"] > 1 for each in shown):
        title += " (± 95 % t-interval over seeds)"
    if rows:
        console.print(Fitted(headings, rows, title=title, numbers=numbers, bold=bold, names=len(names), box=HEAVY_HEAD))
    for line in _lines(study, content):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _headings(study: Study) -> list[str]:
    return ["system", "learning rate"] if study.is_own else ["machine", "a cloud", "clouds", "system"]


def _named(candidate: Candidate) -> list[str]:
    if candidate.is_own:
        return [candidate.system, candidate.labels["learning_rate"]]
    return [*(candidate.labels[key] for key in ("instance", "count", "clouds")), candidate.system]


def _shown(study: Study, content: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The best candidates: those within the bound by the objective, others by the bounded quantity; measured ones
    first."""
    goal = study.goal

    def rank(each: Mapping[str, Any]) -> tuple[bool, bool, float]:
        seconds, money = (each.get(key, {}).get("mean", math.nan) for key in ("seconds", "money"))
        decides = goal.objective if goal.allows(seconds, money) else goal.constrained
        return not goal.allows(seconds, money), not each["seeds"], decides(seconds, money)

    first = content["winner"] and content["winner"]["candidate"]
    return sorted(content["candidates"], key=lambda each: (each["candidate"] != first, *rank(each)))[:_BEST_SHOWN]


def _row(study: Study, each: Mapping[str, Any]) -> list[str]:
    candidate: Candidate = next(other for other in study.candidates if other.name == each["candidate"])
    seeds = f"{each['seeds']} of {each['seeds'] + each['missed']}" if each["missed"] else f"{each['seeds'] or '-'}"
    quantities = [
        _quantity(each, "seconds", duration),
        *([_quantity(each, "money", number)] if "money" in each else []),
        _quantity(each, "wan_bytes", in_bytes),
        _quantity(each, "bytes", in_bytes),
    ]
    return [*_named(candidate), *quantities, seeds, each["why_not"]]


def _quantity(each: Mapping[str, Any], what: str, written: Callable[[float], str]) -> str:
    """E.g. "3.2 h ± 5 min" over seeds, "<= 3.2 h" as a bound, "~ 3.2 h" of an estimate, "?" of nothing."""
    value, half = each[what]["mean"], each[what]["high"] - each[what]["mean"]
    if math.isnan(value):
        return "?"
    how = f"{each[what]['bound']} ".lstrip() if each["seeds"] else "> " if each["estimated"] == "at the least" else "~ "
    return how + written(value) + (f" ± {written(half)}" if half > 0 else "")


def _lines(study: Study, content: Mapping[str, Any]) -> Iterator[str]:
    if study.proposal:
        yield study.proposal
    yield content["summary"]
    if winner := content["winner"]:
        yield content["confidence"]["summary"]
        yield f"{winner['stalls']['summary']}"
        if content["next_best"]:
            yield f"next best: {content['next_best']['in_words']}: {content['next_best']['why']}"
        yield from (f"with {each['with']}: {each['summary']}" for each in content["sensitivity"])
    yield content["data"]["summary"]
    if study.held_out_share:
        yield f"chosen by {percent(study.held_out_share)} of the training samples, held out for it: not by the test set"
    if study.effort:
        yield study.effort.summary
    samples = content["samples"]
    yield (
        f"{samples['simulated']:,} samples simulated for {len(study.candidates)} candidates; to the end with "
        f"{study.seeds} seeds, all of them would take about {samples['exhaustive']:,}"
    )
    if finals := [each.run.folder for finals in study.race.finals.values() for each in finals]:
        folder = study.output / REPORT
        yield f"the last ones on a page: dlion report {shlex.join(map(str, finals))} -o {shlex.quote(str(folder))}"
    files = [DOCUMENT, *([WINNER] if content["winner"] else []), *FIGURES]
    yield f"written: {', '.join(str(study.output / file) for file in files)}"
