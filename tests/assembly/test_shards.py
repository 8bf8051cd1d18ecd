"""Who trains on which samples, and which nobody trains on."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dlion_sim.assembly import Setting, manifest_fields
from dlion_sim.assembly.shards import shards_of, validation_of
from dlion_sim.errors import InputError
from dlion_sim.learning.partition import Indices
from tests.learning.conftest import random_dataset
from tests.simulation.scenarios import digits

KINDS = ("iid", "dirichlet", "label_shards", "shared")


def split(labels: Indices, *overrides: str) -> tuple[set[int], list[list[int]]]:
    """What is held out of such samples, and what lies at each worker."""
    scenario = digits("workload.batch_size=1", *overrides)
    dataset = replace(random_dataset(train=1, test=1), train_targets=torch.from_numpy(labels))
    validation = validation_of(scenario, dataset)
    shards = shards_of(scenario, dataset, validation)
    return set() if validation is None else set(validation.tolist()), [shard.tolist() for shard in shards]


def test_workers_that_share_the_samples_have_one_list_of_them():
    setting = Setting.of(digits("workload.partition=shared"))
    assert len({id(shard) for shard in setting.shards}) == 1 < len(setting.shards)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(KINDS),
    samples=st.integers(60, 300),
    classes=st.integers(1, 6),
    fraction=st.sampled_from((0.0, 0.1, 0.25, 0.5)),
    seed=st.integers(0, 2**32),
)
def test_every_sample_is_trained_on_by_one_worker_or_held_out(kind, samples, classes, fraction, seed):
    labels = np.random.default_rng(seed).integers(0, classes, samples)
    overrides = f"workload.partition={kind}", f"workload.validation={fraction}", f"seed={seed}"
    try:
        validation, shards = split(labels, *overrides)
    except InputError:  # Dirichlet draws may fail to give everyone a sample.
        assume(kind != "dirichlet")
        raise
    if kind == "shared":
        assert shards == [sorted(set(range(samples)) - validation)] * 3
    else:
        assert sorted([*validation, *itertools.chain(*shards)]) == list(range(samples))
    for label in range(classes):
        of_class = set(np.flatnonzero(labels == label).tolist())
        assert abs(len(of_class & validation) - fraction * len(of_class)) <= 0.5
    assert split(labels, *overrides) == (validation, shards)


def test_what_is_held_out_follows_from_the_seed_and_nothing_else():
    labels = np.repeat(np.arange(10), 30)
    one, again = (split(labels, "workload.validation=0.1", f"workload.partition={kind}")[0] for kind in KINDS[:2])
    other, _ = split(labels, "workload.validation=0.1", "seed=2")
    assert one == again != other


def test_batches_come_from_what_is_left():
    assert min(map(len, Setting.of(digits("workload.validation=0.5", "workload.batch_size=239")).shards)) == 239
    with pytest.raises(InputError, match="allowed: 1 to 239") as fault:
        Setting.of(digits("workload.validation=0.5", "workload.batch_size=240"))
    assert fault.value.path == "workload.batch_size"


def test_the_manifest_has_the_classes_of_each_worker():
    without, setting = Setting.of(digits()), Setting.of(digits("workload.validation=0.2"))
    whole, told = manifest_fields(without), manifest_fields(setting)
    assert (whole["evaluated_on"], whole["validation"]) == ("test", None)
    assert told["evaluated_on"] == "validation"
    every = np.sum(whole["partition"], axis=0)
    assert np.array_equal(np.sum([*told["partition"], told["validation"]], axis=0), every)
    assert np.abs(told["validation"] - 0.2 * every).max() <= 0.5
    assert setting.worker(0).setup.training_samples == sum(map(sum, told["partition"]))


@pytest.mark.parametrize("kind", ["iid", "shared"])
def test_the_manifest_has_the_number_of_training_samples(kind):
    setting = Setting.of(digits("workload.validation=0.2", f"workload.partition={kind}"))
    manifest = manifest_fields(setting)
    assert manifest["training_samples"] == len(setting.dataset.train_targets) - sum(manifest["validation"])
