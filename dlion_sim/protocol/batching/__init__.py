"""Batching: how many samples a worker computes a gradient from."""
