"""What the first minutes on a GPU are for: everything that only a GPU can tell, in the order of its importance.

Each step is a process of its own, which is killed when its time is over, and whose figures are on the disk as soon as
they are there. `python -m benchmarks.gpu --accept` runs all; `--rehearse` does so in seconds, tiny and on the CPU.
"""
