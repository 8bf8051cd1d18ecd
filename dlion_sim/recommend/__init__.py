"""Recommendations: the machines and system that reach a target within a deadline or budget."""

from dlion_sim.recommend.candidates import KEY_PARAMETERS, SYSTEMS, Candidate, Choices
from dlion_sim.recommend.goal import Goal
from dlion_sim.recommend.pilot import BEST
from dlion_sim.recommend.study import Study, scenario_of
from dlion_sim.recommend.writing import DOCUMENT, FIGURES, WINNER, write_recommendation
