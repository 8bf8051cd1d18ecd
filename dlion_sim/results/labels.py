"""What to call the system of a run: by its name alone only where it is what the name stands for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def in_words(path: str, value: str) -> str:
    """A setting, e.g. "bandwidth 20 Mbps" for that value of "cluster.wan.bandwidth"."""
    return f"{path.rsplit('.', 1)[-1].replace('_', ' ')} {value}"


def system_label(manifest: Mapping[str, Any], told: Collection[str] = ()) -> str:
    """The name of the run's system and what is replaced in it, e.g. "dlion, weights share".

    What the paths `told` say already is left out, and what is below them. Of a run from before these were written down,
    the name.
    """
    replaced = untold(manifest, told)
    return ", ".join([str(manifest.get("system", "")), *(in_words(path, value) for path, value in replaced.items())])


def untold(manifest: Mapping[str, Any], told: Collection[str] = ()) -> dict[str, str]:
    """What is replaced in the run's system, by path below `system`, but for what the paths `told` say."""
    replaced: dict[str, str] = manifest.get("replaced", {})
    return {
        path: value
        for path, value in replaced.items()
        if not any(f"system.{path}.".startswith(f"{each}.") for each in told)
    }
