"""Settings for all tests."""

import os
from functools import cache

import pytest
from hypothesis import settings

from dlion_sim.emulation.machine import check_machine
from dlion_sim.errors import InputError

# How long an example takes says nothing on a machine that is shared.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)  # before xdist asks for the groups
def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("emulation"):
            item.add_marker(pytest.mark.xdist_group("emulation"))  # One at a time: they measure.


def pytest_runtest_setup(item):
    if item.get_closest_marker("emulation") and (reason := why_not_to_emulate()):
        # Where all is to be tested, what cannot be is a failure.
        (pytest.fail if os.environ.get("DLION_REQUIRE_EMULATION") else pytest.skip)(reason)


@cache
def why_not_to_emulate() -> str:
    try:
        check_machine()
    except InputError as error:
        return str(error)
    return ""
