"""The stages of messages, which take no bytes on the wire."""

import pytest
import torch

from dlion_sim.protocol.exchange.parameter_server import Pulled, Push
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.exchange.periodic import Moved
from dlion_sim.protocol.exchange.ring import BucketTotal, Total
from dlion_sim.protocol.exchange.ring_sum import Chunk
from dlion_sim.protocol.exchange.sparta import Scattered
from dlion_sim.protocol.messages import Channel, Contribution, Message, Mixed, decode
from tests.protocol.joined import run, sent_by, team

P = 6


def stages_of(system):
    """The stages of the data messages of a few workers' iterations."""
    workers = team(system, 4, iterations=6)
    sent = sent_by(workers)
    run(workers, lambda worker, batch_size: (1.0, torch.ones(worker.replica.layout.size)))
    return {message.body.stage for of_one in sent for message in of_one if message.body.channel is Channel.DATA}


@pytest.mark.parametrize(
    ("system", "stages"),
    [
        ("baseline", {"push"}),
        ("dlion", {"push"}),
        ("ako", {"push"}),
        ("gaia", {"push"}),
        ("ring_allreduce", {"reduce", "gather"}),
        ("dpsgd", {"mix"}),
        ("hop", {"push"}),
        ("local_sgd", {"mix"}),
        ("adpsgd", {"mix"}),
        ("sparta", {None}),
        ("power_sgd", {None}),
    ],
)
def test_the_stages_of_a_system(system, stages):
    period = {"exchange": {"period": 2}} if system == "local_sgd" else {}
    assert stages_of({"name": system, **period}) == stages


@pytest.mark.parametrize("body", [Contribution, Mixed, Pulled, Scattered, Moved])
def test_contributions_have_the_same_size_and_different_kinds(body):
    values = torch.ones(6).half() if body is Moved else torch.ones(3)
    message = Message(1, body(7, 32, offset=2), (values,))
    assert message.size == Message(1, Contribution(7, 32, offset=2), (torch.ones(3),)).size
    assert type(decode(message.encode(), workers=2, parameters=P).body) is body
    assert body.kind == "contribution", "in tables"


def test_chunks_begin_where_the_ring_cuts():
    stretches = by_bytes(10, 3)
    first = [Chunk(0, step).first_entry(1, 3, 10) for step in range(2)] + [Total(0, 2).first_entry(1, 3, 10)]
    assert first == [stretches[1][0], stretches[0][0], stretches[2][0]]
    assert Message(1, Chunk(0, 1), (torch.ones(3),)).size == Message(1, Total(0, 1), (torch.ones(3),)).size
    assert (Push(0, 8, 4).first_entry(0, 3, 10), Contribution(0, 8, offset=5).first_entry(0, 3, 10)) == (4, 5)
    assert BucketTotal(0, 9, offset=7).first_entry(1, 3, 10) == 7
