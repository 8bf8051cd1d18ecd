from __future__ import annotations

import copy
import sys

import pytest
import torch
from torch import nn

from dlion_sim.learning import build
from dlion_sim.learning.layers import dense, kernels, pooling, usable_kernels, with_kernels
from tests.learning.conftest import CPU

CIPHER = build("cipher", (3, 32, 32), 10, seed=0)
IMAGES = torch.randn(2, 3, 32, 32)


def test_cipher_has_layers_for_fast_kernels():
    assert usable_kernels(CIPHER, CPU, "fast", IMAGES) == "fast"
    assert nn.ReLU in map(type, CIPHER)  # as it was


def test_asked_for_pytorchs_the_model_stays_as_it_is():
    assert usable_kernels(CIPHER, CPU, "torch", IMAGES) == "torch"
    before = [*CIPHER]
    assert [*with_kernels(CIPHER, "torch")] == before


def test_those_of_a_gpu_are_pytorchs():
    assert usable_kernels(CIPHER, torch.device("cuda"), "fast", IMAGES) == "torch"


@pytest.mark.parametrize(
    ("layers", "inputs"), [([nn.Linear(8, 8), nn.ReLU()], torch.randn(2, 8)), ([nn.Conv2d(3, 5, 3)], IMAGES)]
)
def test_where_no_layer_suits_them_they_are_pytorchs(layers, inputs, caplog):
    assert usable_kernels(nn.Sequential(*layers), CPU, "fast", inputs) == "torch"
    assert caplog.messages == []


def test_an_error_of_the_model_is_its_own(caplog):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        usable_kernels(nn.Sequential(nn.Flatten(), nn.Linear(8, 8)), CPU, "fast", IMAGES)
    assert caplog.messages == []


class Noisy(nn.Sequential):
    """Of outputs with random numbers."""

    def forward(self, images):
        return super().forward(images) + torch.randn(1)


def test_a_model_that_draws_random_numbers_has_them_and_leaves_others_the_same():
    before = torch.random.get_rng_state()
    assert usable_kernels(Noisy(nn.Sequential(*CIPHER)), CPU, "fast", IMAGES) == "fast"
    assert torch.equal(torch.random.get_rng_state(), before)


class Residual(nn.Sequential):
    """Of which the second layer's inputs are also outputs."""

    def forward(self, images):
        rectified = self[0](images)
        return self[1](rectified) + rectified[..., ::2, ::2]


class OneByOne(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, images):
        rectified = self.layers[0](images)
        return self.layers[1](rectified) + rectified[..., ::2, ::2]


class Both(nn.Module):
    """Which adds what a layer gets and returns, both of one shape; by default before weights that are 0."""

    def __init__(self, initial=nn.init.zeros_):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 1), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(32, 10)
        for parameter in self.head.parameters():
            initial(parameter)

    def forward(self, images):
        convolved = self.layers[1](self.layers[0](images))
        return self.head((convolved + self.layers[2](convolved)).mean((2, 3)))


def unsuited(fault):
    return [f"kernels: fast does not suit how this model uses its layers ({fault}), so PyTorch's kernels compute"]


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Residual(nn.ReLU(), nn.MaxPool2d(2)), []),
        (
            OneByOne(),
            unsuited(
                "RuntimeError: The size of tensor a (16) "
                "must match the size of tensor b (8) at non-singleton dimension 3"
            ),
        ),
        (Both(nn.init.ones_), unsuited("its outputs would be others")),
        (Both(), unsuited("its outputs would be others")),
    ],
    ids=["residual", "other shapes", "other values", "other values once trained"],
)
def test_a_model_that_does_not_use_its_layers_one_after_another_keeps_its_function(model, told, caplog):
    kernels = usable_kernels(model, CPU, "fast", IMAGES)
    torch.testing.assert_close(with_kernels(copy.deepcopy(model), kernels)(IMAGES), model(IMAGES))
    assert kernels == "torch"
    assert caplog.messages == told


def without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    for module in ("pooling", "kernels", "winograd", "depthwise"):
        monkeypatch.delitem(sys.modules, f"dlion_sim.learning.layers.{module}", raising=False)


def on_another_processor(monkeypatch):
    monkeypatch.setattr(kernels, "_FEATURES", {"sse2": True})
    kernels.prepare.cache_clear()


def with_a_compiler_that_fails(monkeypatch):
    def fail(*_):
        raise TypeError("Failed in nopython mode\nand so on, for many lines")

    monkeypatch.setattr(pooling, "_pool", fail)
    pooling._prepare.cache_clear()


def with_an_operator_of_another_version(monkeypatch):
    def fail(*_):
        raise RuntimeError("_linear_pointwise() expected at most 5 arguments")

    monkeypatch.setattr(dense, "_multiply", fail)
    dense._prepare.cache_clear()


@pytest.mark.parametrize(
    ("elsewhere", "reason"),
    [
        (without_numba, "ModuleNotFoundError: import of numba halted; None in sys.modules"),
        (on_another_processor, "RuntimeError: this processor has neither AVX-512 nor AVX2 with FMA"),
        (with_a_compiler_that_fails, "TypeError: Failed in nopython mode"),
        (with_an_operator_of_another_version, "RuntimeError: _linear_pointwise() expected at most 5 arguments"),
    ],
)
def test_without_a_compiler_they_are_pytorchs_with_a_warning(elsewhere, reason, monkeypatch, caplog):
    elsewhere(monkeypatch)
    assert usable_kernels(CIPHER, CPU, "fast", IMAGES) == "torch"
    told = f"kernels: fast cannot be compiled here ({reason}), so PyTorch's kernels compute, and take longer"
    assert caplog.messages == [told]
