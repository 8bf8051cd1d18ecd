"""Batching: how many samples a worker computes a gradient from. Each file registers its kinds."""
