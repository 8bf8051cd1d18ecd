from __future__ import annotations

import threading
from contextlib import closing

import torch
from torch import nn

from dlion_sim.learning.pool import ModelPool
from tests.learning.conftest import CPU


def test_each_thread_has_its_own_model_and_one_core():
    model, everybody = nn.Linear(2, 2), threading.Barrier(3)

    def look(own, _):
        everybody.wait(timeout=60)
        return own, torch.get_num_threads()

    with closing(ModelPool(model, CPU, threads=3)) as pool:
        models, cores = zip(*pool.map(look, range(3)), strict=True)
    assert len({id(each) for each in (model, *models)}) == 4
    assert cores == (1, 1, 1)


def test_by_default_as_many_threads_as_torch_uses():
    threads = torch.get_num_threads()
    everybody = threading.Barrier(threads)
    with closing(ModelPool(nn.Identity(), CPU)) as pool:
        pool.map(lambda *_: everybody.wait(timeout=60), range(threads))
    assert torch.get_num_threads() == threads
