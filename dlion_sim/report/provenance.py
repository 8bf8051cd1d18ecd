"""What a run is of, and how to run it again."""

from __future__ import annotations

from typing import Any

from dlion_sim.files import read_bytes
from dlion_sim.results import Run
from dlion_sim.results.run_folder import SCENARIO
from dlion_sim.yaml_text import MOST_BYTES

_MOST_LETTERS = 200
_COMMANDS = {"simulate": "run", "live": "live", "emulate": "emulate"}
"""By the way that a run was made."""
_FACTS = ("seed", "way", "device", "device_name", "kernels", "started", "platform", "cpu_count")


def provenance(run: Run) -> dict[str, Any]:
    """The scenario's text (`yaml`), the manifest's `facts`, `versions`, and the `command` that does it again.

    Raises InputError where the scenario cannot be read.
    """
    manifest = run.manifest
    return {
        "yaml": read_bytes(run.folder / SCENARIO, MOST_BYTES).decode(errors="replace"),
        "command": f"dlion {_COMMANDS[manifest.get('way', 'simulate')]} {SCENARIO}",
        "facts": [[name.replace("_", " "), _told(manifest[name])] for name in _FACTS if name in manifest],
        "versions": [[name, told] for name, told in manifest.get("versions", {}).items()],
    }


def _told(value: object) -> str:
    return str(value)[:_MOST_LETTERS]
