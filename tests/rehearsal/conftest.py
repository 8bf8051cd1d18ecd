"""The rehearsal device in the place of a GPU."""

from __future__ import annotations

import pytest
import torch
from torch.utils import backend_registration

from dlion_sim.learning import accelerator

IS_POSSIBLE = hasattr(backend_registration, "_setup_privateuseone_for_python_backend")

if IS_POSSIBLE:
    # While tests are collected: PyTorch asks for devices once, at the first gradient of a process.
    from tests.rehearsal.device import MACHINE, NAME, register
    from tests.rehearsal.streams import ORDER, Module

    LIBRARIES = register(Module())


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.rehearsal)
            if not IS_POSSIBLE:
                item.add_marker(pytest.mark.skip(reason="this PyTorch takes no device that is written in Python"))


@pytest.fixture
def rehearsal(monkeypatch):
    """The device, which the product takes for a GPU."""
    monkeypatch.setattr(accelerator, "KIND", NAME)
    MACHINE.launched = ORDER.launched
    with MACHINE.counted():
        yield torch.device(NAME)
