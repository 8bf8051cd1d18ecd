"""Synchronization: when a worker may go on."""
