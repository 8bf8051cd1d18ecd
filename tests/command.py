"""The command line in this process."""

from __future__ import annotations

import sys

from dlion_sim.cli.main import main


def dlion(monkeypatch, *arguments) -> int:
    """Run a command, and return how it exits."""
    monkeypatch.setattr(sys, "argv", ["dlion", *map(str, arguments)])
    try:
        main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0
