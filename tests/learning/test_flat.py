from __future__ import annotations

import pickle

import pytest
import torch

from dlion_sim.learning import Layout, Replica, build, flatten

SHAPE = (1, 8, 8)
OPTIMIZERS = [
    ({"kind": "sgd", "learning_rate": 0.1}, lambda ps: torch.optim.SGD(ps, 0.1)),
    ({"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9}, lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9)),
    ({"kind": "adam", "learning_rate": 0.01}, lambda ps: torch.optim.Adam(ps, 0.01)),
]


def model():
    return build("cipher", SHAPE, 10, seed=0)


def replica(**optimizer):
    return Replica(Layout.of(model()), flatten(model()), **({"learning_rate": 0.1} | optimizer))


def gradient(size, seed=0):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def test_layout_covers_the_vector_without_gaps():
    layout = Layout.of(model())
    views = layout.views(torch.zeros(layout.size))
    begins = [view.storage_offset() for view in views]
    assert [0, *(begin + view.numel() for begin, view in zip(begins, views, strict=True))] == [*begins, layout.size]
    assert layout.names == tuple(name for name, _ in model().named_parameters())


def test_views_are_the_variables_and_alias_the_vector():
    layout, flat = Layout.of(model()), flatten(model())
    views = layout.views(flat)
    for view, parameter in zip(views, model().parameters(), strict=True):
        assert torch.equal(view, parameter)
    views[2].fill_(7.0)
    start = sum(layout.sizes[:2])
    assert torch.equal(flat[start : start + layout.sizes[2]], torch.full((layout.sizes[2],), 7.0))


def test_flatten_copies():
    module = model()
    flatten(module).zero_()
    assert flatten(module).any()


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


@pytest.mark.parametrize(("spec", "_"), OPTIMIZERS)
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


@pytest.mark.parametrize(("spec", "_"), OPTIMIZERS)
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
def test_a_pickled_replica_goes_on_to_the_bit(spec, _):
    own = replica(**spec)
    own.step(gradient(own.layout.size, 1))
    again = pickle.loads(pickle.dumps(own))
    for each in (own, again):
        each.step(gradient(each.layout.size, 2))
    assert torch.equal(again.parameters, own.parameters)
    assert again.version == own.version == 2


def test_unknown_optimizer():
    with pytest.raises(ValueError, match="lion"):
        replica(kind="lion")
