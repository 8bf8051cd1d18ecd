"""Reproduction of papers' experiments, with verdicts on their claims, and of tables, with verdicts on their numbers."""

from dlion_sim.studies.reproduction.collection import write_collection
from dlion_sim.studies.reproduction.repetition import (
    MARK,
    Repeated,
    in_short,
    points_of,
    repeated,
    short_name,
    write_results,
)
