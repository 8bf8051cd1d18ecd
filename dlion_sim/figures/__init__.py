"""Plots from run folders."""

from dlion_sim.figures.accuracy import plot_accuracy

__all__ = ["plot_accuracy"]
