"""What `dlion recommend` prints: the candidates, and what came of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import HEAVY_HEAD
from rich.console import Console

from dlion_sim.cli.fitting import Fitted
from dlion_sim.recommend import DOCUMENT, FIGURES, WINNER, Candidate, Study
from dlion_sim.recommend.words import duration
from dlion_sim.results.numbers import in_bytes, number, percent

_MOST_ROWS = 200
_BEST_SHOWN = 12


def print_candidates(study: Study) -> None:
    """Print what would be tried, and what cannot be."""
    rows = [[*_named(each), number(each.per_hour)] for each in study.candidates[:_MOST_ROWS]]
    Console().print(Fitted([*_HEADINGS, "an hour"], rows, numbers=["an hour"], names=4, box=HEAVY_HEAD))
    if len(study.candidates) > _MOST_ROWS:
        print(f"... and {len(study.candidates) - _MOST_ROWS} more")
    for refused in study.refused:
        print(f"{refused.name}: {refused.reason}")
    print(f"{len(study.candidates)} candidates")


def print_recommendation(study: Study, told: Mapping[str, Any], console: Console) -> None:
    """Print the candidates that did best, and what is recommended."""
    best = told["winner"] and told["winner"]["candidate"]
    shown = _shown(study, told)
    rows = [_row(study, each) for each in shown]
    headings = [*_HEADINGS, "time", "cost", "sent", "seeds", "why not"]
    bold = [place for place, each in enumerate(shown) if each["candidate"] == best]
    title = f"{told['scenario']} to {told['target']['value']:g} {told['target']['metric']}, {study.goal.bound}"
    if rows:
        numbers = ["time", "cost", "sent"]
        console.print(Fitted(headings, rows, title=title, numbers=numbers, bold=bold, names=4, box=HEAVY_HEAD))
    for line in _lines(study, told):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


_HEADINGS = ["machine", "a cloud", "clouds", "system"]


def _named(candidate: Candidate) -> list[str]:
    return [*(candidate.labels[key] for key in ("instance", "count", "clouds")), candidate.system]


def _shown(study: Study, told: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The best by what was asked for: those within the bound, the measured ones first."""
    goal = study.goal

    def rank(each: Mapping[str, Any]) -> tuple[bool, bool, float]:
        seconds, money = each["seconds"]["mean"], each["money"]["mean"]
        return not goal.allows(seconds, money), not each["seeds"], goal.spent(seconds, money)

    first = told["winner"] and told["winner"]["candidate"]
    return sorted(told["candidates"], key=lambda each: (each["candidate"] != first, *rank(each)))[:_BEST_SHOWN]


def _row(study: Study, each: Mapping[str, Any]) -> list[str]:
    candidate: Candidate = next(other for other in study.candidates if other.name == each["candidate"])
    left = study.race.left.get(candidate.name)
    how = "" if each["seeds"] else "> " if each["estimated"] == "at the least" else "~ "
    quantities = [
        how + written(each[what]["mean"])
        for what, written in (("seconds", duration), ("money", number), ("bytes", in_bytes))
    ]
    return [*_named(candidate), *quantities, f"{each['seeds'] or '-'}", left.reason if left else ""]


def _lines(study: Study, told: Mapping[str, Any]) -> Iterator[str]:
    yield told["told"]
    if winner := told["winner"]:
        confidence = told["confidence"]
        yield (
            f"it gets there with {confidence['reaches_the_target']} of {confidence['seeds']} seeds, and is the best of "
            f"the last {1 + len(confidence['against'])} with {confidence['wins']}"
        )
        yield f"{winner['stalls']['told']}"
        if told["next_best"]:
            yield f"next best: {told['next_best']['in_words']}: {told['next_best']['why']}"
        yield from (f"with {each['with']}: {each['told']}" for each in told["margins"])
    if study.holds_out:
        yield f"chosen by {percent(study.holds_out)} of the training samples, held out for it: not by the test set"
    samples = told["samples"]
    yield (
        f"{samples['simulated']:,} samples simulated for {len(study.candidates)} candidates; to the end with "
        f"{study.seeds} seeds, all of them would take about {samples['exhaustive']:,}"
    )
    files = [DOCUMENT, *([WINNER] if told["winner"] else []), *FIGURES]
    yield f"written: {', '.join(str(study.output / file) for file in files)}"
