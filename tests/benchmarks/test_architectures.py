"""Networks by their layers have the sizes and costs of the real ones, and stand-ins have proportional sizes."""

import pytest
import torch

from benchmarks.architectures import NETWORKS
from benchmarks.instances import ONE, TWO, scenario
from dlion_sim.scenario import to_data

MILLIONS = {
    "alexnet": 61.1,
    "squeezenet": 1.25,
    "shufflenet": 1.37,
    "mobilenet": 3.5,
    "resnet18": 11.7,
    "resnet50": 25.6,
    "resnet101": 44.5,
    "resnet152": 60.2,
    "vgg11": 132.9,
    "vgg16": 138.4,
    "vgg19": 143.7,
    "bert_large": 335,
}
GIGA = {"alexnet": 0.71, "squeezenet": 0.82, "shufflenet": 0.04, "mobilenet": 0.3, "resnet50": 4.1, "vgg16": 15.5}
"""Multiplications and additions of a sample's forward pass."""


@pytest.mark.parametrize("name", MILLIONS)
def test_numbers_of_parameters_are_the_published_ones(name):
    assert NETWORKS[name].parameters / 1e6 == pytest.approx(MILLIONS[name], rel=0.005)


@pytest.mark.parametrize("name", GIGA)
def test_costs_are_the_published_ones(name):
    assert NETWORKS[name].multiplications / 1e9 == pytest.approx(GIGA[name], rel=0.02)
    assert NETWORKS[name].training_flops == 6 * NETWORKS[name].multiplications


@pytest.mark.parametrize("name", ["shufflenet", "resnet152", "vgg11"])
def test_stand_ins_have_proportional_variables(name):
    real, stand_in = NETWORKS[name], NETWORKS[name].stand_in()
    sizes = [each.numel() for each in stand_in.parameters()]
    assert len(sizes) == len(real.sizes)
    assert min(sizes) == 16
    assert max(sizes) / sum(sizes) == pytest.approx(max(real.sizes) / real.parameters, rel=0.02)
    assert stand_in(torch.ones(2, 1, 8, 8)).shape == (2, 10)


def test_normalisation_adds_two_small_variables_per_convolution():
    with_it, without = NETWORKS["resnet50"], NETWORKS["resnet50_no_norm"]
    assert len(with_it.sizes) == len(without.sizes) + 2 * 53
    assert without.parameters / with_it.parameters == pytest.approx(1, rel=0.003)


def test_instances_are_those_of_the_catalog():
    assert [(place.gpus, place.price) for place in ONE] == [(8, 7.2), (16, 14.4), (4, 12.24), (8, 24.48)]
    assert all((two.gpus, two.price) == (one.gpus, one.price) for two, one in TWO.items())


def test_two_instances_are_connected_by_their_network():
    (_, pair) = TWO
    cluster = to_data(scenario("resnet18", pair))["cluster"]
    assert [cloud["workers"][0]["count"] for cloud in cluster["clouds"]] == [4, 4]
    assert cluster["wan"] == {"bandwidth": "10 Gbps", "rtt": "200 us", "paths": []}
