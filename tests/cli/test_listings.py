"""Lists of systems, models, data sets and so on, in terminals of any width."""

import re
from functools import cache

import pytest

from dlion_sim.cli import listings
from dlion_sim.cli.fitting import Fitted
from dlion_sim.learning import load
from dlion_sim.learning.datasets import PUBLISHED
from dlion_sim.learning.datasets.registry import DATASETS
from dlion_sim.learning.models import MODELS
from dlion_sim.scenario import CATALOGS, DEVICES, shipped
from dlion_sim.scenario.shipped import FOLDER, name_of, shipped_sweeps
from dlion_sim.sweep.loading import Sweep
from tests.command import dlion

KINDS = ["systems", "models", "datasets", "devices", "catalogs", "scenarios"]


@pytest.fixture(scope="module", autouse=True)
def counted_once():
    """Count the models' costs, which takes seconds, once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        models = cache(lambda models=listings.models: [*models()])
        patch.setattr(listings, "models", lambda: iter(models()))
        yield


@pytest.mark.parametrize(("kind", "columns"), [*((kind, 80) for kind in KINDS), ("systems", 40), ("systems", 200)])
def test_no_word_is_broken_at_any_width(capsys, monkeypatch, kind, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert dlion(monkeypatch, kind) == 0
    output = capsys.readouterr().out
    assert "…" not in output
    assert max(map(len, output.splitlines())) <= columns
    tables = [each for each in getattr(listings, kind)() if isinstance(each, Fitted)]
    cells = [cell for table in tables for row in table.rows for cell in row]
    assert {word for cell in cells for word in cell.split() if len(word) < 30} <= set(output.split())


def test_shipped_scenarios_are_listed_with_their_folder(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert dlion(monkeypatch, "scenarios") == 0
    output = capsys.readouterr().out
    assert {name_of(file) for file in [*shipped(), *shipped_sweeps()]} <= set(output.split())
    assert f" {FOLDER}," in output


def test_help_names_every_key_of_a_sweep(capsys, monkeypatch):
    assert dlion(monkeypatch, "sweep", "--help") == 0
    words = set(re.findall(r"\w+", capsys.readouterr().out.split("Arguments")[0]))
    assert Sweep.model_fields.keys() - {"description"} <= words


def test_each_list_is_complete(capsys, monkeypatch):
    for kind, names in {"models": MODELS, "datasets": DATASETS, "devices": DEVICES, "catalogs": CATALOGS}.items():
        assert dlion(monkeypatch, kind) == 0
        assert set(names) <= set(re.split(r"[\s,]+", capsys.readouterr().out))


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("digits", None),
        ("cifar10", "cifar-10-batches-py"),
        ("fashion_mnist", "fashion-mnist"),
        ("diabetes", None),
        ("shakespeare", None),
    ],
)
def test_listed_facts_of_data_sets_are_true(name, folder, published):
    if folder:
        published(folder)
    dataset, told = load(name), PUBLISHED[name]
    assert PUBLISHED.keys() == DATASETS.keys()
    assert (dataset.input_kind, dataset.input_shape, dataset.task) == (told.input_kind, told.input_shape, told.task)
    assert (len(dataset.train_inputs), len(dataset.test_inputs)) == (told.training, told.test)
