"""How sure the winner is: over seeds, and among the learning rates that were tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.goal import best_first
from dlion_sim.recommend.observed import Observed
from dlion_sim.recommend.options import Option
from dlion_sim.recommend.race import Race


def confidence(race: Race, seeds: int, known: Sequence[Option]) -> dict[str, Any]:
    """The number of seeds with which the winner is the best finalist, and whether its learning rate is an extreme."""
    winner, *others = race.winners
    wins = 0
    for observation in race.successes(winner.name):
        rivals = [
            (other, each)
            for other in others
            for each in race.successes(other.name)
            if _seed(each) == _seed(observation)
        ]
        (first, _), *_ = best_first(
            [(winner, observation), *rivals], lambda one: race.resources(one[0], one[1].seconds, one[1].money)
        )
        wins += first is winner
    reached = len(race.successes(winner.name))
    return {
        "seeds": seeds,
        "reaches_the_target": reached,
        "wins": wins,
        "against": [each.name for each in others],
        "summary": _of_seeds(seeds, reached, len(race.winners), wins) + _extreme_rate(winner, known),
    }


def _of_seeds(seeds: int, reached: int, last: int, wins: int) -> str:
    if seeds == 1:
        return "only one seed was tried, so the variation over seeds is unknown"
    best = f", and is the best of the last {last} with {wins}" if last > 1 else ""
    return f"it reaches the target with {reached} of {seeds} seeds{best}"


def _extreme_rate(winner: Candidate, known: Sequence[Option]) -> str:
    """That rates beyond the winner's were not tried with its system, as a clause; empty if they were, or no others."""
    if not winner.is_own:
        return ""
    rate = winner.labels["learning_rate"]
    of_system = [each.candidate for each in known if each.candidate.system == winner.system]
    tried = sorted({each.labels["learning_rate"] for each in of_system}, key=float)
    if len(tried) == 1 or rate not in (tried[0], tried[-1]):
        return ""
    extreme, further = ("smallest", "smaller") if rate == tried[0] else ("largest", "larger")
    write = f"`workload.optimizer.learning_rate: {rate}`"
    return f"; {rate} is the {extreme} learning rate tried with it; for {further} ones write {write} and repeat"


def _seed(observation: Observed) -> int:
    return int(observation.run.manifest["seed"])
