"""How a rule of the scenario says that it is broken; loading turns it into the user's error."""

from __future__ import annotations

from collections.abc import Collection


class RuleError(ValueError):
    """What is wrong, what is allowed, and where below the model that found it (`at`, e.g. ("paths", 3))."""

    def __init__(self, problem: str, *, allowed: str | None = None, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{problem}; allowed: {allowed}" if allowed else problem)
        self.problem = problem
        self.allowed = allowed
        self.at = at


class UnknownKeyError(RuleError):
    """Of a `key` that means nothing where it stands."""

    def __init__(self, key: str, problem: str, *, allowed: str) -> None:
        super().__init__(problem, allowed=allowed)
        self.key = key


def listed(names: Collection[str], most: int = 12) -> str:
    """The names, comma separated; of a long list only the first ones and the count."""
    shown = ", ".join(list(names)[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
