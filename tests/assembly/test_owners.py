"""Owners whose samples lie where the scenario says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dlion_sim.assembly import Setting, manifest_fields
from dlion_sim.assembly.shards import shards_of
from dlion_sim.errors import InputError
from dlion_sim.learning.datasets import load
from dlion_sim.scenario import dump, from_data
from dlion_sim.yaml_text import read_yaml
from tests.learning.conftest import random_dataset
from tests.simulation.scenarios import digits

SITES = 5
OWNERS = np.arange(300) % SITES
"""Whose each of 300 samples is."""
EACH = ("s0", "s1", "s2", "s3", "s4")


def scenario(at, workers=(1, 1, 1, 1, 1), *overrides):
    clouds = [
        {"name": name, "workers": [{"count": count, "compute": "4 cores"}]}
        for name, count in zip(EACH, workers, strict=False)
    ]
    partition = {"kind": "owners", **({} if at is None else {"at": at})}
    data = digits(cluster={"clouds": clouds, "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"}})
    return from_data(
        {**read_yaml(dump(data)), "workload": {"dataset": "digits", "batch_size": 4, "partition": partition}}, overrides
    )


def owners_at(at, workers=(1, 1, 1, 1, 1), owners=OWNERS, without=()):
    """Whose samples, and how many, each worker has."""
    dataset = replace(random_dataset(train=len(owners), test=4), owners=torch.from_numpy(owners))
    overrides = [f"workload.partition.without={[*without]}"] if without else []
    shards = shards_of(scenario(at, workers, *overrides), dataset, None)
    assert sorted(np.concatenate(shards)) == np.flatnonzero(~np.isin(owners, without)).tolist()
    return [
        dict(zip(*map(np.ndarray.tolist, np.unique(owners[own], return_counts=True)), strict=True)) for own in shards
    ]


def test_owners_are_at_the_places_of_the_scenario():
    assert owners_at({name: place for place, name in enumerate(EACH)}) == [{site: 60} for site in range(SITES)]
    assert owners_at({"s0": 4, "s1": 3, "s2": [2], "s3": 1, "s4": 0}) == [{site: 60} for site in (4, 3, 2, 1, 0)]


def test_owners_without_a_place_are_assigned_at_random():
    placed = owners_at({"s3": 3})
    assert placed[3] == {3: 60}
    assert sorted(owner for own in placed for owner in own) == list(range(SITES))


def test_a_clouds_workers_split_its_owners_samples():
    first, second, other = owners_at({"s0": [0, 1], "s1": [2, 3, 4]}, workers=(2, 1))
    assert {owner: first[owner] + second[owner] for owner in first} == {0: 60, 1: 60}
    assert sum(first.values()) == sum(second.values()) == 60
    assert other == {2: 60, 3: 60, 4: 60}


def test_a_worker_with_its_own_entry_has_no_part_in_its_clouds():
    placed = owners_at({"s0/0": 4, "s0": 1, "s1": [0, 2, 3]}, workers=(3, 1))
    assert placed == [{4: 60}, {1: 30}, {1: 30}, {0: 60, 2: 60, 3: 60}]


def test_omitted_owners_are_at_no_worker():
    assert owners_at({"s0": 0, "s1": 1, "s2": 2, "s3": 4}, (1, 1, 1, 1), without=[3]) == [
        {0: 60},
        {1: 60},
        {2: 60},
        {4: 60},
    ]
    dealt = owners_at(None, (1, 1), without=[0, 3])
    assert sorted(owner for own in dealt for owner in own) == [1, 2, 4]


@pytest.mark.parametrize(
    ("without", "words"),
    [(1, "owner 1 is at s1; allowed: owners that are not in at"), (9, "there is no owner 9; allowed: 0, 1")],
)
def test_owners_with_a_place_cannot_be_omitted(without, words):
    dataset = replace(random_dataset(train=300, test=4), owners=torch.from_numpy(OWNERS))
    override = f"workload.partition.without={without}"
    with pytest.raises(InputError, match=words):
        shards_of(scenario({"s1": 1}, (1, 1, 1, 1, 1), override), dataset, None)


def test_the_random_assignment_of_owners_is_frozen():
    """The draw of a permutation, cut into parts, by the run's stream for partitions."""
    from dlion_sim.streams import stream

    order = stream(1, "partition").permutation(SITES)
    assert [[*own] for own in owners_at(None)] == [[owner] for owner in order.tolist()]


@pytest.mark.parametrize(
    ("at", "path", "words"),
    [
        (
            {"s9": 3},
            "workload.partition.at",
            "there is no cloud or worker 's9'; allowed: s0, s1, s2, s3, s4; or a worker of these, e.g. s0/0",
        ),
        ({"s1/1": 3}, "workload.partition.at", "there is no cloud or worker 's1/1'"),
        ({"s1": 3, "s2": [1, 3]}, "workload.partition.at.s2", "owner 3 is at s1 already"),
        ({"s1": []}, "workload.partition.at.s1", "1 or more entries"),
        ({"s1": "three"}, "workload.partition.at.s1", "must be a whole number, not 'three'"),
        ({"s1/0": 1, "s1": 2}, "workload.partition.at.s1", "all of its workers have entries of their own"),
    ],
)
def test_invalid_places(at, path, words):
    with pytest.raises(InputError, match=words) as fault:
        scenario(at)
    assert fault.value.path == path


@pytest.mark.parametrize(
    ("at", "workers", "words"),
    [
        ({"s3": 7}, (1,) * 5, "there is no owner 7; allowed: 0, 1, 2, 3, 4"),
        ({"s0": 0, "s1": 1, "s2": 2}, (1, 1, 1), "nothing says where the samples of owner 3, 4 lie"),
        ({"s0": [0, 1]}, (1,) * 5, "3 owners are left for the 4 workers that are not named"),
        ({"s0": 0, "s1": [1, 2, 3, 4]}, (61, 1), "60 samples cannot be shared by 61 workers"),
    ],
)
def test_owners_that_cannot_be_placed(at, workers, words):
    with pytest.raises(InputError, match=words) as fault:
        owners_at(at, workers)
    assert fault.value.path.startswith("partition.at")


def test_the_manifest_has_the_owners_of_each_worker(tmp_path, monkeypatch):
    (tmp_path / "sites.py").write_text(
        "from dataclasses import replace\nimport torch\nfrom dlion_sim.learning.datasets import load\n"
        "def data():\n    plain = load('digits')\n"
        "    return replace(plain, owners=torch.arange(len(plain.train_targets)) % 5)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    at = {name: place for place, name in enumerate(EACH)}
    setting = Setting.of(scenario(at, (1,) * 5, "workload.dataset=sites:data"))
    count = len(load("digits").train_targets)
    assert manifest_fields(setting)["owners"] == [{str(site): len(range(site, count, 5))} for site in range(5)]
    assert "owners" not in manifest_fields(Setting.of(digits()))


def test_a_resolved_scenario_is_equal():
    first = scenario({"s3": 3, "s1": [1, 2]})
    assert from_data(read_yaml(dump(first))) == first
