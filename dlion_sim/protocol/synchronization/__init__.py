"""Synchronization: when a worker's iteration may end. Each file registers its kinds."""
