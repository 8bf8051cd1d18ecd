"""What the commands have in common: exit codes, words, and where runs go."""

from __future__ import annotations

from pathlib import Path

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
"""By which shells tell an interrupt."""
WHY_NO_EXCHANGE = "it says nothing of the system (is the period of local_sgd or diloco longer than the run?)"
"""Of a run in which a worker never exchanged anything."""
RUNS = Path("results/runs")
