"""Where a key belongs that stands where it means nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from dlion_sim.scenario.model import Model
from dlion_sim.scenario.scenario import Scenario

_OTHER_WORDS = {"delay": "rtt", "epochs": "iterations", "latency": "rtt", "lr": "learning_rate"}
_MOST = 3


def elsewhere(key: str, where: str) -> str:
    """ "; there is workload.optimizer.learning_rate", or nothing where no part of a scenario but that has such a key.

    `where` is the path of the part in which the key stands, which may have such a key if it is of another kind.
    """
    here = re.sub(r"\.\d+(?=\.)", ".*", f"{where}.{key}")
    sought = _OTHER_WORDS.get(key, key)
    paths = sorted(
        {path for name, path in _keys(Scenario, "", ()) if name == sought} - {here}, key=lambda path: path.count(".")
    )
    return f"; there is {', '.join(paths[:_MOST])}" if paths else ""


def _keys(model: type[Model], above: str, within: tuple[type[Model], ...]) -> Iterator[tuple[str, str]]:
    """All keys below a part, each with its path."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield key, f"{above}{key}"
        for inner, entry in _parts(field.annotation, ""):
            if inner not in within:
                yield from _keys(inner, f"{above}{key}{entry}.", (*within, inner))


def _parts(annotation: Any, entry: str) -> Iterator[tuple[type[Model], str]]:
    """The models that an annotation names, and what stands before their keys where they are entries of a list."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation, entry
    for inner in () if get_origin(annotation) is dict else get_args(annotation):
        yield from _parts(inner, ".*" if get_origin(annotation) is list else entry)
