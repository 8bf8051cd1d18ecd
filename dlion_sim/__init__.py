"""Simulate decentralized deep learning on many small clouds: real gradients, modelled machines and WAN links."""

from importlib.metadata import version

__version__ = version("dlion-sim")
