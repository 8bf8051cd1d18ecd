"""All systems and choices, each registered by its file."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from dlion_sim.protocol import baseline, batching, exchange, knowledge, synchronization  # noqa: F401 (it registers)
from dlion_sim.protocol.registry import SYSTEMS, Composition

__all__ = ["SYSTEMS", "Composition"]

for package in (batching, exchange, synchronization, knowledge):
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
