"""Stalls of a scenario, from simulations with and without their causes."""

from dlion_sim.studies.stalls.explain import DOCUMENT, FIGURE, StallStudy, explain
from dlion_sim.studies.stalls.variants import Variant, variants

__all__ = ["DOCUMENT", "FIGURE", "StallStudy", "Variant", "explain", "variants"]
