"""Reproduction of papers' experiments: a sweep for each, and verdicts on their claims."""

from dlion_sim.studies.reproduction.claims import (
    MARK,
    Claim,
    Experiment,
    experiments,
    in_short,
    short_name,
    shortened,
)
from dlion_sim.studies.reproduction.verdicts import judged
from dlion_sim.studies.reproduction.writing import write_collection, write_experiment
