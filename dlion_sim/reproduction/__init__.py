"""What papers report, run again: each of their experiments a sweep, and what it says of their claims."""

from dlion_sim.reproduction.claims import Claim, Experiment, experiments
from dlion_sim.reproduction.short import MARK, in_short, short_name, shortened
from dlion_sim.reproduction.verdicts import Verdict, judged
from dlion_sim.reproduction.writing import write_collection, write_experiment

__all__ = [
    "MARK",
    "Claim",
    "Experiment",
    "Verdict",
    "experiments",
    "in_short",
    "judged",
    "short_name",
    "shortened",
    "write_collection",
    "write_experiment",
]
