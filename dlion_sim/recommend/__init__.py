"""Recommendations: the machines and system that reach a target within a deadline or budget."""

from dlion_sim.recommend.candidates import COUNTS, KEY_PARAMETERS, SYSTEMS, Candidate, Choices
from dlion_sim.recommend.given import scenario_of
from dlion_sim.recommend.goal import Goal
from dlion_sim.recommend.study import Study
from dlion_sim.recommend.writing import DOCUMENT, FIGURES, WINNER, write_recommendation

__all__ = [
    "COUNTS",
    "DOCUMENT",
    "FIGURES",
    "KEY_PARAMETERS",
    "SYSTEMS",
    "WINNER",
    "Candidate",
    "Choices",
    "Goal",
    "Study",
    "scenario_of",
    "write_recommendation",
]
