"""Settings for all tests."""

import fcntl
import os
import shutil
import tempfile
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from dlion_sim.emulation.requirements import check_requirements
from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.registry import DATASETS
from dlion_sim.learning.process import frozen_objects
from tests.at_once import at_once
from tests.fresh_machine import machines_data, published, refuse_network

__all__ = ["at_once", "machines_data", "published"]

# How long an example takes says nothing on a machine that is shared, and what fails, fails each time.
settings.register_profile(
    "steady", settings.default, deadline=None, max_examples=40, derandomize="FUZZ_FIRST" not in os.environ
)
settings.load_profile("steady")

refuse_network()

# Hundreds of tests run the small scenario, which takes little longer than to load its data set.
DATASETS["digits"] = cache(DATASETS["digits"])


@pytest.fixture(autouse=True)
def one_emulation_at_a_time(request):
    """They measure, and look for what is left; tests may run in several processes."""
    if not request.node.get_closest_marker("emulation"):
        yield
        return
    with (Path(tempfile.gettempdir()) / "dlion-emulation-tests").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


REAL_TIME = ("benchmarks", "calibration", "cli", "emulation", "live", "report", "sweep")
"""Folders of tests that wait for other processes, sockets and browsers."""


def pytest_collection_modifyitems(config, items):
    """On a busy machine a deadline may pass without a fault: such a test has a second attempt, which is reported.

    What is deterministic has none.
    """
    for item in items:
        folder = item.path.relative_to(config.rootpath / "tests").parts[0]
        if folder in REAL_TIME:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish(session):
    """Each simulation would walk, count and collect all that was collected and imported, for half a second."""
    whole = ExitStack()
    whole.enter_context(frozen_objects())
    session.config.add_cleanup(whole.close)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests that stand together are done by the same process, as each prepares anew what they share."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_runtest_setup(item):
    # Where all is to be tested, what cannot be is a failure.
    marker = item.get_closest_marker("emulation")
    if marker and (reason := why_not_to_emulate(**marker.kwargs)):
        (pytest.fail if os.environ.get("DLION_REQUIRE_EMULATION") else pytest.skip)(reason)
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        (pytest.fail if os.environ.get("DLION_REQUIRE_GPU") else pytest.skip)("needs a GPU that PyTorch can use")
    if item.get_closest_marker("browser") and (reason := why_not_to_browse()):
        (pytest.fail if os.environ.get("DLION_REQUIRE_BROWSER") else pytest.skip)(reason)


@cache
def why_not_to_browse() -> str:
    missing = [program for program in ("chromium", "chromedriver") if shutil.which(program) is None]
    missing += [package for package in ("plotly", "selenium") if find_spec(package) is None]
    return f"{', '.join(missing)}: not installed; see tests/setup_browser.sh" if missing else ""


@cache
def why_not_to_emulate(by_hand: bool = False) -> str:
    try:
        check_requirements(by_hand=by_hand)
    except InputError as error:
        return str(error)
    return ""
