"""Comparisons between run folders."""

from dlion_sim.analysis.comparison import common_target, comparison, time_to_accuracy
from dlion_sim.analysis.fidelity import Fidelity, compare
from dlion_sim.analysis.groups import Group, accuracy_of, group_runs, labelled, said, varying
from dlion_sim.analysis.timeline import waited_most_for

__all__ = [
    "Fidelity",
    "Group",
    "accuracy_of",
    "common_target",
    "compare",
    "comparison",
    "group_runs",
    "labelled",
    "said",
    "time_to_accuracy",
    "varying",
    "waited_most_for",
]
