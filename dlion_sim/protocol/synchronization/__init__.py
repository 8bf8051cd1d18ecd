"""Synchronization: when a worker may go on."""

from dlion_sim.protocol.synchronization.hop import HopSynchronization
from dlion_sim.protocol.synchronization.policies import Asynchronous, BoundedStaleness, Synchronous

__all__ = ["Asynchronous", "BoundedStaleness", "HopSynchronization", "Synchronous"]
