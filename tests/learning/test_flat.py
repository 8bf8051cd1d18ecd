from __future__ import annotations

import torch

from dlion_sim.learning import Layout, build, flatten


def model():
    return build("cipher", (1, 8, 8), 10, seed=0)


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
