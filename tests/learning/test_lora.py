from __future__ import annotations

import hashlib

import pytest
import torch
from torch import nn

from dlion_sim.errors import InputError
from dlion_sim.learning import Layout, build, flatten
from dlion_sim.learning.lora import adapted, load_base

pytestmark = pytest.mark.usefixtures("single_threaded")

DENSE = {"query_key_value": (32, 96), "attention.output": (32, 32), "hidden": (32, 128), "mlp.output": (128, 32)}
TOKENS = torch.arange(16)[None]


def gpt(seed=0):
    return build("gpt", (16,), 17, seed, layers=2, heads=4, width=32)


def test_only_adapters_are_parameters():
    rank = 3
    model = adapted(gpt(), rank, alpha=6.0)
    assert Layout.of(model).size == 2 * sum(rank * (inputs + outputs) for inputs, outputs in DENSE.values())
    assert {name.rpartition(".")[2] for name in Layout.of(model).names} == {"down", "up"}


@pytest.mark.parametrize(
    ("targets", "dense"),
    [
        (["query_key_value"], ["query_key_value"]),
        (["output"], ["attention.output", "mlp.output"]),
        (["mlp.hidden"], ["hidden"]),
    ],
)
def test_targets_are_ends_of_names(targets, dense):
    model = adapted(gpt(), 2, 4.0, targets)
    assert Layout.of(model).size == 2 * sum(2 * sum(DENSE[name]) for name in dense)


def test_it_begins_as_the_model_that_it_adapts():
    assert torch.equal(adapted(gpt(), 4, 8.0)(TOKENS), gpt()(TOKENS))


def test_an_adapter_adds_the_product_of_its_matrices():
    layer = nn.Linear(5, 3)
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    model = adapted(nn.Sequential(layer), rank=2, alpha=3.0)
    down, up = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) for shape in ((2, 5), (3, 2)))
    model.load_state_dict({"0.down": down, "0.up": up}, strict=False)
    inputs = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    expected = nn.functional.linear(inputs, weight + 1.5 * up @ down, bias)
    torch.testing.assert_close(model(inputs), expected)


def test_gradients_are_of_the_adapters_and_leave_the_base():
    model = adapted(gpt(), 2, 4.0)
    base = {name: buffer.clone() for name, buffer in model.named_buffers()}
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    before = flatten(model)
    for _ in range(2):
        optimizer.zero_grad()
        model(TOKENS).square().sum().backward()
        optimizer.step()
    assert (flatten(model) != before).float().mean() > 0.9
    assert base
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, base[name]), name


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [("gpt", (16,), "query_key_value, output, hidden"), ("resnet18", (3, 32, 32), "13")],
)
def test_a_target_that_is_no_dense_layer_is_named(name, shape, words):
    with pytest.raises(InputError, match=rf"lora\.targets: no dense layer is named 'query'; allowed: {words}"):
        adapted(build(name, shape, 17, 0), 2, 4.0, ["query"])


def test_a_model_without_dense_layers_has_nothing_to_adapt():
    with pytest.raises(InputError, match=r"lora: the model has no dense layers"):
        adapted(nn.Conv2d(3, 8, 3), 2, 4.0)


@pytest.fixture
def file(tmp_path):
    torch.save(gpt(seed=5).state_dict(), tmp_path / "base.pt")
    return tmp_path / "base.pt"


def test_a_base_is_read_from_a_file(file):
    model = gpt()
    digest = load_base(model, file)
    assert torch.equal(flatten(model), flatten(gpt(seed=5)))
    assert digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert load_base(model, file, digest) == digest


def test_another_base_than_before_is_refused(file):
    with pytest.raises(InputError, match=r"lora\.base: .*base\.pt has changed: its SHA-256 is "):
        load_base(gpt(), file, "0" * 64)


class Executes:
    def __reduce__(self):
        return pytest.fail, ("executed",)


@pytest.mark.parametrize(
    "content",
    [{"weight": torch.zeros(3)}, [1, 2], 7, {"token_embedding_head.weight": 3}, Executes()],
    ids=["others", "a list", "a number", "no tensors", "code"],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(content, tmp_path):
    torch.save(content, tmp_path / "base.pt")
    with pytest.raises(InputError, match=r"lora\.base: .*base\.pt does not hold the model's parameters") as told:
        load_base(gpt(), tmp_path / "base.pt")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("content", [None, b"", b"no archive", b"PK\x03\x04", b"\x80\x02a.", b"\x80\x02J\x01."])
def test_a_missing_file_is_refused_in_one_line(content, tmp_path):
    if content is not None:
        (tmp_path / "base.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"lora\.base: .*base\.pt ") as told:
        load_base(gpt(), tmp_path / "base.pt")
    assert "\n" not in str(told.value)
