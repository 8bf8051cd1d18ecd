"""How long machines wait for samples."""

import pytest

from dlion_sim.assembly import InputPipeline
from dlion_sim.scenario import Input


def pipeline(shard_samples=1000, **keys):
    return InputPipeline(Input.model_validate(keys), shard_samples)


def waits(pipe, computed, batches, batch_size=10):
    """The stalls of so many computations, each of which takes so long after its own."""
    now, stalls = 0.0, []
    for _ in range(batches):
        stalls.append(pipe.take(batch_size, now))
        now += stalls[-1].seconds + computed
    return stalls


@pytest.mark.parametrize(("computed", "left"), [(0.3, 0.2), (0.5, 0.0), (2.0, 0.0)])
def test_a_computation_waits_for_what_is_left_of_getting_its_batch_ready(computed, left):
    first, *others = waits(pipeline(prep_rate=20), computed, 4)
    assert first == (0.5, 0.0)
    assert [stall.seconds for stall in others] == pytest.approx([left] * 3)


def test_reading_adds_what_it_takes_longer_than_preparing():
    slow = pipeline(prep_rate=20, disk="100 kB/s", sample_bytes="8 kB")  # 0.5 s to prepare a batch, 0.8 s to read it
    *_, stall = waits(slow, 0.3, 3)
    assert stall == pytest.approx((0.2, 0.3))


def test_the_first_epoch_is_cold_and_later_ones_are_read_from_the_cache():
    read = pipeline(25, disk="10 kB/s", sample_bytes="1 kB", cache=0.8)
    fetched = [stall.fetch for stall in waits(read, 0.0, 4)]
    assert fetched == pytest.approx([1.0, 1.0, 0.5 + 0.1, 0.2])


def test_the_wait_for_others_is_time_to_get_ready_in():
    pipe = pipeline(prep_rate=10)
    pipe.take(10, 0.0)
    assert pipe.take(10, 1.75) == pytest.approx((0.25, 0.0))
    assert pipe.take(10, 9.0) == (0.0, 0.0)
