"""Plots from run folders."""
