"""Layers equivalent to PyTorch's, faster on a CPU core."""

from dlion_sim.learning.layers.choosing import Kernels, usable_kernels, with_kernels

__all__ = ["Kernels", "usable_kernels", "with_kernels"]
