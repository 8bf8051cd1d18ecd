"""Synchronization: when a worker may go on. Each file registers what is in it."""
