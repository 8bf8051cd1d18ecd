"""What comes to workers when, and what they train on."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from dlion_sim.assembly import Setting, StreamSampler
from dlion_sim.assembly.arrivals import Arrivals, arrival_times, by_class
from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, Newest, Reservoir
from dlion_sim.learning.moment import changed
from dlion_sim.learning.tasks import Classification
from dlion_sim.scenario import Schedule
from tests.simulation.scenarios import digits, streamed

STEPS = Schedule(((0.0, 5.0), (2.0, 0.0), (3.0, 20.0)), 4.0)


@pytest.mark.parametrize("rate", [Schedule.constant(7.0), Schedule(((0.0, 3.0), (1.5, 10.0), (2.5, 0.0))), STEPS])
def test_as_many_have_come_as_the_rate_sums_up_to(rate):
    times = arrival_times(rate, 10_000, 10.0)
    for now in np.linspace(0.01, 10.0, 200):
        assert np.sum(times <= now) == int(rate.mean(now) * now + 1e-9), now
    assert list(times) == sorted(times)


def test_no_more_come_than_there_are_and_none_after_the_end():
    assert len(arrival_times(STEPS, 12, float("inf"))) == 12
    assert list(arrival_times(Schedule.constant(2.0), 10, 2.0)) == [0.5, 1.0, 1.5, 2.0]
    assert not len(arrival_times(Schedule.constant(2.0), 0, 2.0))
    assert len(arrival_times(Schedule(((0.0, 1.0), (3.0, 0.0))), 10, float("inf"))) == 3


def test_classes_come_by_their_shares():
    members = [np.arange(10_000), np.arange(10_000, 20_000), np.arange(20_000, 30_000)]
    times = np.linspace(0, 1, 9000)

    def shares(times):
        return np.stack([1 - times, times, np.zeros_like(times)], axis=1)

    samples = by_class(members, times, shares, np.random.default_rng(0))
    assert len(set(samples)) == len(samples)
    first = (samples < 10_000).reshape(9, 1000).sum(axis=1)
    assert not (samples >= 20_000).any()
    expected = (1 - times).reshape(9, 1000).sum(axis=1)
    assert chisquare([*first, *(1000 - first)], [*expected, *(1000 - expected)], ddof=8).pvalue > 0.01


def test_what_comes_to_each_worker_is_of_its_own_shard_in_an_order_of_its_own():
    plain, stream = Setting.of(digits()), Setting.of(streamed(arrivals={"rate": "20/s", "of": {"west": "40/s"}}))
    assert [len(shard) for shard in stream.shards] == [50 + 80, 50 + 80, 50 + 160]
    for shard, own in zip(plain.shards, stream.shards, strict=True):
        assert set(own) <= set(shard)
        assert len(set(own)) == len(own)
    again = Setting.of(streamed(arrivals={"rate": "20/s", "of": {"west": "40/s", "east/0": "1/s"}}))
    assert list(again.shards[1]) == list(stream.shards[1]), "a worker's order is its own"
    assert len(again.shards[0]) == 54


def test_all_of_the_shard_comes_and_then_nothing():
    setting = Setting.of(streamed(arrivals="200/s"))
    assert [sorted(own) for own in setting.shards] == [sorted(shard) for shard in Setting.of(digits()).shards]
    assert setting.stream.arrivals[0].times[-1] == pytest.approx((len(setting.shards[0]) - 50) / 200)


LATE = {"kind": "late_class", "class": 7, "from": "2 s"}


def test_a_late_class_comes_from_its_time_on_and_the_test_goes_with_it():
    setting = Setting.of(streamed(drift=[LATE]))
    for each in setting.stream.arrivals:
        classes = setting.dataset.labels[each.samples]
        assert not (classes[each.times < 2] == 7).any()
        assert (classes[each.times >= 2] == 7).any()
    before, after = setting.moment(1.9).shares, setting.moment(2.0).shares
    assert before[7] == 0
    assert before.sum() == pytest.approx(1)
    assert after == pytest.approx(np.bincount(setting.dataset.labels) / len(setting.dataset.labels), abs=0.01)


def test_a_label_shift_may_be_one_clouds_alone():
    shift = {"kind": "label_shift", "classes": [0, 1], "weight": {"3 s": 0, "1 s": 1}, "clouds": ["west"]}
    drift = Setting.of(streamed(drift=[shift])).stream.drift
    east, other, west = (drift.shares(worker, np.array([0.0, 1.0, 2.0, 3.0, 9.0])) for worker in range(3))
    assert np.ptp(east, axis=0) == pytest.approx(0)
    odds = west[:, 0] / west[:, 5]
    assert odds / odds[0] == pytest.approx([1, 1, 0.5, 0, 0])
    assert west.sum(axis=1) == pytest.approx(1)
    assert drift.moment(3.0).shares[0] == pytest.approx((east[0, 0] + other[0, 0]) / 3), "that of the mean worker"


def test_inputs_are_as_they_were_when_they_came():
    turn = {"kind": "rotation", "from": "1 s", "to": "3 s", "by": 90}
    light = {"kind": "brightness", "to": "2 s", "by": 0.5}
    setting, plain = Setting.of(streamed(drift=[turn, light])), Setting.of(digits()).dataset
    arrivals = setting.stream.arrivals[1]
    degrees = np.clip((arrivals.times - 1) / 2, 0, 1) * 90
    brightness = np.clip(arrivals.times / 2, 0, 1) * 0.5
    expected = changed(plain.train_inputs[arrivals.samples], brightness, degrees, 0, 16)
    assert torch.equal(setting.dataset.train_inputs[arrivals.samples], expected)
    of_test = setting.moment(4.0).change(plain.test_inputs)
    last = changed(plain.test_inputs, np.full(len(of_test), 0.5), np.full(len(of_test), 90.0), 0, 16)
    assert torch.equal(of_test, last)
    assert torch.equal(setting.moment(0.0).change(plain.test_inputs), plain.test_inputs)


@pytest.mark.parametrize("keep", ["all", {"window": 70}, {"reservoir": 70}])
def test_a_worker_has_no_more_than_it_keeps(keep):
    setting = Setting.of(streamed(keep=keep))
    assert setting.worker(0).setup.shard_samples == (130 if keep == "all" else 70)
    assert setting.worker(0).setup.training_samples == 3 * 130


@given(
    gaps=st.lists(st.floats(0, 3), min_size=1, max_size=60),
    asked=st.lists(st.tuples(st.floats(0, 3), st.integers(1, 40)), min_size=1, max_size=20),
    initial=st.integers(1, 10),
    most=st.none() | st.integers(1, 30),
    reservoir=st.booleans(),
)
def test_nobody_trains_on_what_has_not_come_or_is_gone(gaps, asked, initial, most, reservoir):
    times = np.concatenate([np.zeros(initial), np.cumsum(gaps)])
    samples = np.random.default_rng(0).permutation(len(times))
    kept = Reservoir(most, np.random.default_rng(1)) if most and reservoir else Newest(most)
    sampler = StreamSampler(Arrivals(samples, times, initial), kept, np.random.default_rng(2))
    now, received = 0.0, list(samples[:initial])
    for later, size in asked:
        now += later
        new = list(sampler.receive(now))
        received += new
        assert received == list(samples[times <= now]), "what has come, each once, in order"
        batch = sampler.take(size)
        there = received if not most or isinstance(kept, Reservoir) else received[-most:]
        assert set(batch) <= set(there)
        assert len(set(batch)) == size or size > len(kept.samples)


WRONG = {
    "initial": ({"initial": 5}, "workload.stream.initial", "16 to 479"),
    "too many": ({"initial": 5000}, "workload.stream.initial", "16 to 479"),
    "keep": ({"keep": {"window": 10}}, "workload.stream.keep", "16 or more"),
    "of": ({"arrivals": {"rate": "5/s", "of": {"south": "2/s"}}}, "workload.stream.arrivals.of", "east, west"),
    "class": ({"drift": [{**LATE, "class": 10}]}, "workload.stream.drift.0", "0 to 9"),
    "cloud": ({"drift": [{**LATE, "clouds": ["south"]}]}, "workload.stream.drift.0.clouds", "east, west"),
    "runs out": (
        {"arrivals": "60/s", "drift": [{"kind": "label_shift", "classes": [3], "weight": {"0 s": 20}}]},
        "workload.stream.drift",
        "fewer arrivals",
    ),
    "nothing": (
        {"drift": [{"kind": "label_shift", "classes": list(range(10)), "weight": {"1 s": 1, "2 s": 0}}]},
        "workload.stream.drift",
        "a class with a weight",
    ),
}


@pytest.mark.parametrize(("stream", "path", "allowed"), WRONG.values(), ids=WRONG)
def test_a_stream_that_cannot_be_is_refused(stream, path, allowed):
    with pytest.raises(InputError) as refused:
        Setting.of(streamed(**stream))
    assert refused.value.path == path
    assert allowed in refused.value.allowed


def test_a_drift_of_classes_needs_a_duration():
    with pytest.raises(InputError, match="without a duration"):
        Setting.of(streamed("iterations=5", duration=None, drift=[LATE]))
    assert Setting.of(streamed("iterations=5", duration=None)).stream


def vectors():
    inputs, targets = torch.randn(600, 5), torch.arange(600) % 2
    return Dataset(inputs, targets, inputs, targets, Classification(2))


@pytest.mark.parametrize(
    ("dataset", "drift", "problem"),
    [
        ("diabetes", [], "'diabetes' has no classes, by which a stream is tested"),
        (f"{__name__}:vectors", [{"kind": "rotation", "to": "1 s", "by": 5}], "has no images, which rotation needs"),
    ],
)
def test_a_stream_is_of_classes_and_inputs_turn_only_if_they_are_images(dataset, drift, problem):
    with pytest.raises(InputError, match=problem):
        Setting.of(streamed(f"workload.dataset={dataset}", drift=drift))
