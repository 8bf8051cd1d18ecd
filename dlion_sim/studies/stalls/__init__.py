"""What holds a scenario up: simulated again with one thing more each time, or with one less."""

from dlion_sim.studies.stalls.explain import DOCUMENT, FIGURE, Explained, explain
from dlion_sim.studies.stalls.variants import Variant, variants

__all__ = ["DOCUMENT", "FIGURE", "Explained", "Variant", "explain", "variants"]
