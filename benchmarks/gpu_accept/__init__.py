"""Acceptance on a GPU: everything that needs one, in the order of importance.

Each step is a process, killed when its time is over, whose figures are written as soon as they are known. `python -m
benchmarks.gpu --accept` runs all; `--rehearse` does so in seconds, with tiny sizes on the CPU.
"""
