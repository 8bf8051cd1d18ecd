"""What benchmarks have in common: their options, and comparing wall times of two programs that took turns."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from statistics import median


def options(about: str | None) -> ArgumentParser:
    """What every benchmark can be told; `about` it says what it is."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="do only what shows that it works; figures say nothing")
    return parser


def ratio(reference: Sequence[float], ours: Sequence[float]) -> str:
    """How many times as fast ours is: the median over the turns, and the least and the greatest of them."""
    ratios = [a / b for a, b in zip(reference, ours, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
