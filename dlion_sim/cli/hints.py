"""Commands that tell who gives a scenario's key as an option how to set it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from typer.core import TyperCommand

from dlion_sim.errors import InputError


class Hinting(TyperCommand):
    """A command; one with `--set` refuses `--duration` in words that say how a duration is set."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = str(getattr(error, "option_name", ""))
            if not hasattr(error, "possibilities") or not any(each.name == "overrides" for each in self.params):
                raise
            path = _path_of(option.lstrip("-").replace("-", "_"))
            if path is None:
                raise
            problem = "is no option, but a scenario's key"
            raise InputError(problem, file=option, allowed=f"--set {path}=...") from None


def _path_of(key: str) -> str | None:
    """Where in a scenario a key stands: of several places the one that is least deep; None where it is none."""
    from dlion_sim.scenario import Scenario

    paths = sorted(_paths(Scenario), key=lambda path: path.count("."))
    return next((path for path in paths if path == key or path.endswith(f".{key}")), None)


def _paths(kind: type, above: str = "") -> Iterator[str]:
    """All dotted paths of keys, those in lists left out, since they need a number."""
    for name, field in kind.model_fields.items():  # type: ignore[attr-defined]
        path = f"{above}{field.alias or name}"
        yield path
        for inner in _models(field.annotation):
            yield from _paths(inner, f"{path}.")


def _models(annotation: Any) -> Iterator[type]:
    from dlion_sim.scenario.model import Model

    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    elif getattr(annotation, "__origin__", None) not in (list, dict):
        for argument in get_args(annotation):
            yield from _models(argument)
