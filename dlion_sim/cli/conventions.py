"""What the commands have in common: exit codes, and where runs go."""

from __future__ import annotations

from pathlib import Path

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
"""By which shells tell an interrupt."""
RUNS = Path("results/runs")
