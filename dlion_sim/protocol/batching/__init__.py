"""Batching: how many samples a worker computes a gradient from."""

from dlion_sim.protocol.batching.fixed import FixedBatching
from dlion_sim.protocol.batching.weighted_dynamic import WeightedDynamicBatching

__all__ = ["FixedBatching", "WeightedDynamicBatching"]
