"""What there is to choose from, on any terminal."""

import pytest

from dlion_sim.cli import listings
from dlion_sim.cli.fitting import Fitted
from dlion_sim.learning import load
from dlion_sim.learning.datasets import PUBLISHED
from dlion_sim.learning.datasets.registry import DATASETS
from dlion_sim.learning.models import MODELS
from dlion_sim.scenario import DEVICES
from tests.command import dlion

KINDS = ["systems", "models", "datasets", "devices", "scenarios"]


@pytest.mark.parametrize(("kind", "columns"), [*((kind, 80) for kind in KINDS), ("systems", 40), ("systems", 200)])
def test_every_word_is_whole_at_any_width(capsys, monkeypatch, kind, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert dlion(monkeypatch, kind) == 0
    output = capsys.readouterr().out
    assert "…" not in output
    assert max(map(len, output.splitlines())) <= columns
    tables = [each for each in getattr(listings, kind)() if isinstance(each, Fitted)]
    cells = [cell for table in tables for row in table.rows for cell in row]
    assert {word for cell in cells for word in cell.split() if len(word) < 30} <= set(output.split())


def test_each_kind_lists_all_that_a_scenario_may_name(capsys, monkeypatch):
    for kind, names in {"models": MODELS, "datasets": DATASETS, "devices": DEVICES}.items():
        assert dlion(monkeypatch, kind) == 0
        assert set(names) <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["digits", "cifar10", "fashion_mnist", "diabetes", "shakespeare"])
def test_what_is_told_of_a_data_set_is_so(name):
    dataset, told = load(name), PUBLISHED[name]
    assert PUBLISHED.keys() == DATASETS.keys()
    assert (dataset.input_kind, dataset.input_shape, dataset.task) == (told.input_kind, told.input_shape, told.task)
    assert (len(dataset.train_inputs), len(dataset.test_inputs)) == (told.training, told.test)
