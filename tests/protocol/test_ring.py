"""Ring all-reduce: Baseline's mean, the same to the bit everywhere, at the traffic that it promises."""

import pytest
import torch

from tests.protocol.joined import noisy, run, sent_by, team, trained


def ring(count, iterations=5, **exchange):
    """The parameters of workers, and the messages of each."""
    system = {"name": "ring_allreduce", "exchange": exchange}
    workers = team(system, count, iterations=iterations)
    sent = sent_by(workers)
    run(workers, noisy)
    return [worker.replica.parameters for worker in workers], sent


def entries(messages):
    return [message.tensors[0].numel() for message in messages]


@pytest.mark.parametrize("exchange", [{}, {"bucket_bytes": "1 B"}, {"bucket_bytes": "12 B"}], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_ring_is_baseline(count, exchange):
    found, _ = ring(count, **exchange)
    torch.testing.assert_close(found[0], trained({"name": "baseline"}, count, iterations=5)[0])
    assert all(torch.equal(found[0], each) for each in found)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_each_worker_sends_two_gradients_less_two_nths(count):
    _, sent = ring(count, iterations=4)
    assert [sum(entries(messages)) for messages in sent] == [4 * 2 * (count - 1) * 6 // count] * count


def test_buckets_are_processed_one_after_another_from_the_last_variable_on():
    """Variables of 4 and 2 entries: each by itself, or both in the bucket that holds 9 bytes at least."""
    _, (first, second) = ring(2, iterations=1, bucket_bytes="1 B")
    assert (entries(first), entries(second)) == ([1, 1, 2, 2], [1, 1, 2, 2])
    assert [(message.body.step, message.body.offset) for message in first] == [(0, 4), (1, 5), (2, 0), (3, 2)]
    assert [type(message.body).stage for message in first] == ["reduce", "gather"] * 2
    assert entries(ring(2, iterations=1, bucket_bytes="9 B")[1][0]) == [3, 3]


def test_no_chunk_is_empty():
    """The last variable has 2 entries, so three workers would have none of it to send."""
    assert entries(ring(3, iterations=1, bucket_bytes="1 B")[1][0]) == [2] * 4
