"""What must be settled before Ray is imported, which reads its environment then."""

from __future__ import annotations

import os
import secrets
from importlib.util import find_spec

from dlion_sim.errors import InputError


def prepare_ray(*, private: bool) -> None:
    """Have Ray report nothing home and, if `private`, take orders from nobody but this process.

    A Ray that is started listens on every interface, and does whatever it is sent; so it gets a secret to be asked for.
    Raises InputError where Ray is not installed.
    """
    if find_spec("ray") is None:
        raise InputError("needs the package ray", allowed="pip install 'dlion-sim[ray]'")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if private:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
