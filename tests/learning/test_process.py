"""Settings of the process: there while somebody needs them, and then as they were."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path
from runpy import run_path

import pytest
import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import process
from dlion_sim.learning.process import device_named, device_of_node


def cuda_settings():
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32


def test_cuda_is_exact_within_the_block():
    """Whatever the caller has set, in torch's former words, its newer ones, or for all of torch."""
    program = """
from contextlib import closing
import torch
from torch import nn
from dlion_sim.learning.pool import ModelPool
from dlion_sim.learning.process import exact_cuda
from tests.learning.test_process import cuda_settings, everything

def check():
    before = everything()
    with exact_cuda():
        with closing(ModelPool(nn.Identity(), torch.device("cuda"))):
            assert cuda_settings() == (True, False, False, False)
        assert cuda_settings() == (True, False, False, False)
    assert everything() == before, (everything(), before)

check()
torch.set_float32_matmul_precision("medium")
torch.backends.cudnn.benchmark = True
check()
torch.backends.cuda.matmul.fp32_precision = "tf32"
torch.backends.cudnn.conv.fp32_precision = "ieee"
check()
torch.backends.fp32_precision = "tf32"
check()
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def everything():
    """All that can be told of how floats are rounded."""
    backends = torch.backends
    places = (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn, backends.mkldnn.matmul, backends)
    told = [str(getattr(place, "fp32_precision", None)) for place in places]
    for read in (torch.get_float32_matmul_precision, cuda_settings):
        try:
            told.append(str(read()))
        except RuntimeError:
            told.append("mixed")
    return told


def test_objects_are_frozen_unless_the_caller_has_done_so():
    frozen_objects = run_path(process.__file__)["frozen_objects"]  # all tests are within the other one
    gc.unfreeze()
    with frozen_objects():
        assert gc.get_freeze_count()
    assert not gc.get_freeze_count()
    gc.freeze()
    with frozen_objects():
        pass
    assert gc.get_freeze_count()  # not compared: frozen objects that nothing refers to any more are not counted


class Ring:
    """An object that only the garbage collector can free."""

    def __init__(self):
        self.own = self


def test_what_is_left_before_all_but_the_first_block_is_collected():
    frozen_objects = run_path(process.__file__)["frozen_objects"]
    gc.unfreeze()
    before = weakref.ref(Ring())
    with frozen_objects():
        assert before()
        within = weakref.ref(Ring())
    assert within()
    with frozen_objects():
        assert not before()
        assert not within()


@pytest.fixture
def gpus(monkeypatch):
    """Says how many GPUs there are."""

    def there_are(count):
        monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
        monkeypatch.setattr("torch.cuda.device_count", lambda: count)

    return there_are


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_nodes_share_the_gpus_that_there_are_in_turn(gpus, device):
    gpus(2)
    assert [str(device_of_node(device, rank)) for rank in range(4)] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    gpus(1)
    assert {str(device_of_node(device, rank)) for rank in range(4)} == {"cuda:0"}


def test_nodes_compute_on_the_cpu_where_they_are_to_or_must(gpus):
    gpus(2)
    assert device_of_node("cpu", 1) == torch.device("cpu")
    gpus(0)
    assert device_of_node("auto", 1) == torch.device("cpu")
    for named in (device_named, lambda device: device_of_node(device, 1)):
        with pytest.raises(InputError, match="no GPU that PyTorch can use"):
            named("cuda")
