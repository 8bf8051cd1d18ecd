"""A user's own systems and choices, named in a scenario as `package.module:Name`."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path

from dlion_sim.errors import InputError


def is_reference(name: str) -> bool:
    """Whether a name refers to something of the user's own."""
    return ":" in name


def digest(module: str) -> str:
    """Of the source of a module that was imported; empty where there is none."""
    file = getattr(sys.modules[module], "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else ""


def referenced(reference: str, path: str) -> object:
    """What `package.module:Name` refers to; modules are also looked for in the current folder.

    Raises InputError, with the `path` inside the scenario, where there is no such thing.
    """
    module, _, name = reference.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        found: object = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, SyntaxError, ValueError) as error:
        raise InputError(f"'{reference}' cannot be found: {error}", path=path) from error
    return found
