"""A run leaves the process that it runs in as it found it."""

import gc
import os
import random
import signal
import sys
import threading
import warnings

import matplotlib
import numpy as np
import pytest
import torch

from dlion_sim.simulation import resume, simulate
from tests.simulation.scenarios import digits


def in_a_new_thread(function):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join()
    return answers[0]


def settings():
    """Settings of the process that a caller may have changed, or that other computations depend on."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return {
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "threads of others": in_a_new_thread(torch.get_num_threads),
        "cuda": (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32),
        "onednn": torch.backends.mkldnn.enabled,
        "precision": torch.get_float32_matmul_precision(),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "denormals": (torch.tensor(1e-40) * 1.0).item(),
        "torch's random numbers": torch.get_rng_state().tolist(),
        "numpy's random numbers": str(np.random.get_state()),  # noqa: NPY002  (it is that of others)
        "random numbers": random.getstate(),
        "numpy's errors": np.geterr(),
        "garbage": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0),
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "modules": list(sys.path),
        "warnings": list(warnings.filters),
        "figures": dict(matplotlib.rcParams),
        "running threads": threading.active_count(),
    }


@pytest.fixture
def own_settings():
    """Of a caller who has some."""
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_run_leaves_the_process_as_it_was(tmp_path, own_settings, interrupted):
    scenario = digits("duration=0.3 s", system="ako")
    simulate(scenario, tmp_path / "before")  # what is imported and compiled only once
    before = settings()
    events = iter(range(10))
    run = simulate(scenario, tmp_path / "run", interrupted=lambda: interrupted and next(events) == 5)
    assert settings() == before
    if interrupted:
        resume(run.folder)
        assert settings() == before


def test_a_run_that_fails_leaves_the_process_as_it_was(tmp_path, own_settings):
    scenario = digits("duration=0.3 s", system="ako")
    before = settings()

    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        simulate(scenario, tmp_path / "run", interrupted=fail)
    assert settings() == before
