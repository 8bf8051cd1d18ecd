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


def test_the_calling_thread_computes_at_once_on_one_core():
    model, threads = nn.Linear(2, 2), torch.get_num_threads()
    found = []

    def look(own, fails):
        found.append((own is model, threading.current_thread(), torch.get_num_threads()))
        if fails:
            raise ValueError("as asked for")
        return "an answer"

    with closing(ModelPool(model, CPU)) as pool:
        answers = [pool.call(look, fails) for fails in (False, True)]
        assert found == [(False, threading.current_thread(), 1)] * 2
    assert answers[0].result() == "an answer"
    assert isinstance(answers[1].exception(), ValueError)
    assert torch.get_num_threads() == threads
