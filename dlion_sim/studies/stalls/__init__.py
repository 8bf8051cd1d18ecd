"""Stalls of a scenario, from simulations with and without their causes."""

from dlion_sim.studies.stalls.explain import DOCUMENT, StallStudy, explain
from dlion_sim.studies.stalls.variants import variants
