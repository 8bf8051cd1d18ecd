from __future__ import annotations

import pickle
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.learning import Layout, Replica, build, flatten
from dlion_sim.learning.lora import adapted
from dlion_sim.learning.optimizer import Muon
from dlion_sim.learning.replica import look_at

pytestmark = pytest.mark.usefixtures("single_threaded")

SHAPE = (1, 8, 8)
OPTIMIZERS = [
    ({"kind": "sgd", "learning_rate": 0.1}, lambda ps: torch.optim.SGD(ps, 0.1)),
    ({"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9}, lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9)),
    (
        {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.05},
        lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9, weight_decay=0.05),
    ),
    ({"kind": "adam", "learning_rate": 0.01}, lambda ps: torch.optim.Adam(ps, 0.01)),
    (
        {"kind": "adamw", "learning_rate": 0.01, "weight_decay": 0.1},
        lambda ps: torch.optim.AdamW(ps, 0.01, weight_decay=0.1),
    ),
    ({"kind": "muon", "learning_rate": 0.02, "weight_decay": 0.1}, lambda ps: MuonAndAdamW(ps)),
]
CLIPPED = ({"kind": "adamw", "learning_rate": 0.01, "clip_norm": 0.5}, None)


def model():
    return build("cipher", SHAPE, 10, seed=0)


class MuonAndAdamW:
    """As the rule's definition: all matrices but the last one by Muon."""

    def __init__(self, parameters):
        *matrices, _ = (each for each in parameters if each.dim() > 1)
        self._matrices = matrices
        self._flat = [torch.nn.Parameter(each.detach().flatten(1)) for each in matrices]
        others = [each for each in parameters if all(each is not matrix for matrix in matrices)]
        self._muon = torch.optim.Muon(self._flat, 0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
        self._adam = torch.optim.AdamW(others, 0.02, weight_decay=0.1)

    def step(self):
        for flat, matrix in zip(self._flat, self._matrices, strict=True):
            flat.grad = matrix.grad.flatten(1)
        self._adam.step()
        self._muon.step()
        for flat, matrix in zip(self._flat, self._matrices, strict=True):
            matrix.data.copy_(flat.data.view_as(matrix))


def replica(**optimizer):
    return Replica(Layout.of(model()), flatten(model()), **({"learning_rate": 0.1} | optimizer))


def add_to(vector, parameters, times):
    parameters.add_(vector, alpha=times)


def gradient(size, seed=0):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("spec", "optimizer_of"), OPTIMIZERS)
def test_steps_equal_torchs_on_the_module(spec, optimizer_of):
    module, own = model(), replica(**spec)
    optimizer = optimizer_of(list(module.parameters()))
    for seed in range(4):
        flat = gradient(own.layout.size, seed)
        own.step(flat)
        for parameter, part in zip(module.parameters(), own.layout.views(flat), strict=True):
            parameter.grad = part.clone()
        optimizer.step()
        torch.testing.assert_close(own.parameters, flatten(module), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("spec", "_"), [*OPTIMIZERS, CLIPPED])
def test_a_step_that_is_not_applied_counts_for_the_optimizer(spec, _):
    moved, stepped = replica(**spec), replica(**spec)
    for seed in range(4):
        flat, before = gradient(moved.layout.size, seed), moved.snapshot()
        step = moved.step_of(flat)
        assert torch.equal(moved.parameters, before)
        moved.add(step)
        stepped.step(flat)
        torch.testing.assert_close(moved.parameters, stepped.parameters, rtol=1e-6, atol=1e-6)
    assert moved.state()[0] == stepped.state()[0] == 4
    assert moved.remembers == (spec["kind"] != "sgd" or "momentum" in spec)


@pytest.mark.parametrize("clip_norm", [0.5, 1e6])
@pytest.mark.parametrize(("spec", "optimizer_of"), OPTIMIZERS[:-1])  # Muon's bfloat16 would show any rounding.
def test_a_gradient_is_clipped_by_its_norm_as_torch_clips_it(spec, optimizer_of, clip_norm):
    module, own = model(), replica(**spec, clip_norm=clip_norm)
    optimizer = optimizer_of(list(module.parameters()))
    for seed in range(3):
        flat = gradient(own.layout.size, seed)
        own.step(flat)
        for parameter, part in zip(module.parameters(), own.layout.views(flat), strict=True):
            parameter.grad = part.clone()
        torch.nn.utils.clip_grad_norm_(module.parameters(), clip_norm)
        optimizer.step()
        torch.testing.assert_close(own.parameters, flatten(module), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("spec", "_"), [*OPTIMIZERS, CLIPPED])
def test_every_step_writes_the_same_tensor_anew(spec, _):
    own = replica(**spec)
    tensor, flat = own.parameters, gradient(own.layout.size)
    given = flat.clone()
    for version in range(1, 4):
        before = tensor.clone()
        own.step(flat)
        assert own.parameters is tensor
        assert own.version == version
        assert (tensor != before).float().mean() > 0.99
        assert torch.equal(flat, given)


@pytest.mark.parametrize(("spec", "_"), [*OPTIMIZERS, CLIPPED])
def test_steps_do_not_depend_on_the_number_of_threads(spec, _):
    before = torch.get_num_threads()
    ends = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        own = replica(**spec)
        for seed in range(3):
            own.step(gradient(own.layout.size, seed))
        own.merge(gradient(own.layout.size), 0.3)
        ends.append(own.parameters)
    torch.set_num_threads(before)
    assert all(torch.equal(end, ends[0]) for end in ends)


def test_replicas_start_equal_and_apart():
    initial = flatten(model())
    one, other = (Replica(Layout.of(model()), initial, learning_rate=0.1) for _ in range(2))
    one.step(gradient(initial.numel()))
    assert torch.equal(other.parameters, initial)
    assert torch.equal(flatten(model()), initial)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.75, 1.0])
def test_merge(share):
    own = replica()
    before, other = own.parameters.clone(), gradient(own.layout.size)
    own.merge(other, share)
    torch.testing.assert_close(own.parameters, before - share * (before - other))
    if share in (0.0, 1.0):
        assert torch.equal(own.parameters, other if share else before)
    assert own.version == 1


def test_a_copy_of_others_parameters_heals_those_that_are_not_finite():
    own = replica()
    other = own.parameters.clone()
    own.write(0, torch.full_like(other, float("nan")))
    own.merge(other, 1.0)
    assert torch.equal(own.parameters, other)


def test_muon_steps_by_hidden_matrices_alone():
    """Not by embeddings, nor by an output that is one of them."""
    layout = Layout.of(build("gpt", (8,), 50, seed=0))
    muon = Muon(layout, 0.0)
    of_layers = sum(
        size
        for name, shape, size in zip(layout.names, layout.shapes, layout.sizes, strict=True)
        if len(shape) > 1 and name.startswith("blocks.")
    )
    assert sum(rows * columns for _, rows, columns in muon._matrices) == of_layers


def test_muon_steps_by_the_adapters_of_all_hidden_matrices():
    layout = Layout.of(adapted(build("gpt", (8,), 50, seed=0), rank=2, alpha=4.0))
    assert sum(rows * columns for _, rows, columns in Muon(layout, 0.0)._matrices) == layout.size


def test_entries_are_written_on_one_twin_only():
    own = replica()
    before, other, indices = own.parameters.clone(), own.twin(), torch.tensor([7, 2])
    own.write_entries(indices, torch.tensor([1.5, -2.5]))
    expected = before.clone()
    expected[7], expected[2] = 1.5, -2.5
    assert torch.equal(own.parameters, expected)
    assert torch.equal(other.parameters, before)
    assert own.version == 1


def test_snapshot_is_shared_until_the_next_write():
    own = replica()
    first = own.snapshot()
    kept = first.clone()
    assert own.snapshot() is first
    own.step(gradient(own.layout.size))
    assert torch.equal(first, kept)
    assert torch.equal(own.snapshot(), own.parameters)
    own.merge(first, 1.0)
    assert torch.equal(own.snapshot(), first)


@pytest.mark.parametrize(("spec", "_"), OPTIMIZERS)
def test_a_pickled_replica_continues_to_the_bit(spec, _):
    own = replica(**spec)
    own.step(gradient(own.layout.size, 1))
    again = pickle.loads(pickle.dumps(own))
    for each in (own, again):
        each.step(gradient(each.layout.size, 2))
    assert torch.equal(again.parameters, own.parameters)
    assert again.version == own.version == 2


writes = st.one_of(
    st.tuples(st.just("step"), st.integers(0, 2)),
    st.tuples(st.just("step_by"), st.integers(0, 2)),
    st.tuples(st.just("merge"), st.integers(0, 2)),
    st.tuples(st.just("mix"), st.integers(0, 2)),
    st.tuples(st.just("write"), st.integers(0, 2)),
    st.tuples(st.just("snapshot"), st.just(0)),
    st.tuples(st.just("pickle"), st.just(0)),
)
"""What may happen to a replica, and with which of three vectors."""


def test_only_plain_sgd_is_plain():
    assert [replica(**spec).plain for spec, _ in OPTIMIZERS] == [True] + [False] * (len(OPTIMIZERS) - 1)
    for other in ({"weight_decay": 0.05}, {"clip_norm": 0.5}):
        assert not replica(kind="sgd", **other).plain


@pytest.mark.parametrize(("spec", "_"), OPTIMIZERS)
@given(schedule=st.lists(st.tuples(st.integers(0, 3), writes), max_size=30))
def test_twins_are_equal_to_independent_replicas(spec, _, schedule):
    shape = Layout(("v",), ((5,),))
    vectors = [gradient(5, seed) for seed in range(3)]
    decay = {"decay": lambda step: 1 / (step + 1)} if not any(what == "pickle" for _, (what, _) in schedule) else {}
    origin = Replica(shape, gradient(5, 9), **spec, **decay)
    twins = [origin.twin() for _ in range(4)]
    loners = [Replica(shape, gradient(5, 9), **spec, **decay) for _ in range(4)]
    seen = []
    for number, (what, vector) in schedule:
        if what == "pickle":
            twins[number] = pickle.loads(pickle.dumps(twins[number]))
            continue
        for each in (twins[number], loners[number]):
            match what:
                case "step_by" if each.plain and each is twins[number]:
                    each.step_by(partial(add_to, vectors[vector]))
                case "step" | "step_by":
                    each.step(vectors[vector])
                case "merge":
                    each.merge(vectors[vector], 0.3)
                case "mix":
                    each.mix(0.5, [(vectors[vector], 0.5)])
                case "write":
                    each.write(2, vectors[vector][:2])
                case "snapshot":
                    seen.append((each.snapshot(), each.parameters.clone()))
        for twin, loner in zip(twins, loners, strict=True):
            assert torch.equal(twin.parameters, loner.parameters)
            assert twin.version == loner.version
    for snapshot, as_it_was in seen:
        assert torch.equal(snapshot, as_it_was)
    assert torch.equal(origin.parameters, gradient(5, 9))


@pytest.mark.parametrize(("spec", "_"), OPTIMIZERS)
def test_twins_with_equal_steps_share_memory(spec, _):
    origin = replica(**spec)
    twins = [origin.twin() for _ in range(4)]
    for seed in range(3):
        total = gradient(origin.layout.size, seed)
        for twin in twins:
            twin.step(total)
        assert len({id(twin.parameters) for twin in twins}) == 1
        assert twins[0].parameters is not origin.parameters
    twins[1].step(total)
    twins[2].merge(total, 0.5)
    assert len({id(twin.parameters) for twin in twins}) == 3


def test_the_learning_rate_decays_with_the_steps():
    own = replica(learning_rate=0.5, decay=lambda step: 0.1**step)
    gradient_of_ones = torch.ones(own.layout.size)
    rates = []
    for _ in range(3):
        before = own.parameters.clone()
        rates.append(own.learning_rate)
        own.step(gradient_of_ones)
        torch.testing.assert_close(own.parameters, before - rates[-1] * gradient_of_ones)
    assert rates == pytest.approx([0.5, 0.05, 0.005])


def test_mixing_weighs_parameters():
    own = replica()
    before, others = own.parameters.clone(), [gradient(own.layout.size, seed) for seed in range(2)]
    version = own.version
    own.mix(0.5, zip(others, (0.3, 0.2), strict=True))
    torch.testing.assert_close(own.parameters, 0.5 * before + 0.3 * others[0] + 0.2 * others[1])
    assert own.version > version


def test_a_model_refuses_parameters_of_another_layout():
    other = build("cipher", SHAPE, 11, seed=0)
    with pytest.raises(ValueError, match="where its model's is"):
        look_at(model(), Replica(Layout.of(other), flatten(other), learning_rate=0.1))


def test_a_model_on_another_device_looks_at_a_copy_there():
    own, elsewhere = replica(), model().to("meta")
    for _ in range(2):
        variables = look_at(elsewhere, own)
        assert {variable.device.type for variable in variables} == {"meta"}
    assert own.parameters.device.type == "cpu"
