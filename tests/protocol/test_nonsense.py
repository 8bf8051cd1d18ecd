"""Well-formed messages that no correct peer sends: refused, with nothing changed."""

import pytest
import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.batching.weighted_dynamic import ComputeProfile
from dlion_sim.protocol.events import GradientReady, MessageArrived, ProfileReady, Send, Started
from dlion_sim.protocol.exchange.pairwise import Swap
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange, Pulled, Push
from dlion_sim.protocol.exchange.periodic import Moved, MovedChunk
from dlion_sim.protocol.exchange.ring import BucketChunk, Total
from dlion_sim.protocol.exchange.ring_sum import Chunk
from dlion_sim.protocol.exchange.significance import Announcement
from dlion_sim.protocol.knowledge.direct import LossReport, WeightsRequest
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message, Mixed, Weights, decode
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.synchronization.hop import Token
from tests.protocol.joined import layout, setup, workers_of
from tests.protocol.members import state

P = 6
INDICES = torch.tensor([1, 4], dtype=torch.int32)


def values(count=P):
    return torch.ones(count)


def worker_of(system, **keys):
    """Worker 0 of three, which computes its first gradient."""
    (worker,) = workers_of({"name": system} if isinstance(system, str) else system, [setup(**keys)])
    worker.handle(Started(), 0.0)
    if worker.phase is Phase.PROFILING:
        worker.handle(ProfileReady(((8, 0.1), (16, 0.2))), 0.0)
    return worker


def refused(participant, message):
    """It refuses what decoding accepts, and is as it was before."""
    decode(message.encode(), workers=9, parameters=P)
    before = state(participant)
    with pytest.raises(MalformedMessageError) as error:
        participant.handle(MessageArrived(message), 1.0)
    assert state(participant) == before
    return str(error.value)


@pytest.mark.parametrize(
    "body",
    [Contribution(0, 8), Weights(1), LossReport(1, 0.5), ComputeProfile(0.1, 0.1, 9), WeightsRequest()],
    ids=lambda body: type(body).__name__,
)
@pytest.mark.parametrize("sender", [0, 3, 8])
def test_messages_of_strangers_are_refused(body, sender):
    tensors = (values(),) if isinstance(body, Contribution | Weights) else ()
    assert "no peer" in refused(worker_of("dlion"), Message(sender, body, tensors))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("system", ["local_sgd", "diloco"])
def test_movements_are_whole_and_in_the_scenarios_precision(system, dtype):
    other = ({torch.float16, torch.bfloat16} - {dtype}).pop()
    precision = {torch.float16: "fp16", torch.bfloat16: "bf16"}[dtype]
    worker = worker_of({"name": system, "exchange": {"precision": precision}})
    for tensor in (values(3).to(dtype), values().to(other)):
        assert "other entries" in refused(worker, Message(1, Moved(0, 8), (tensor,)))
    assert "'mixed_params'" in refused(worker, Message(1, Mixed(0, 8), (values(),)))
    assert "'moved_params'" in refused(worker_of(system), Message(1, Moved(0, 8), (values().to(dtype),)))
    worker.handle(MessageArrived(Message(1, Moved(0, 8), (values().to(dtype),))), 1.0)


def test_a_chunk_of_movements_is_the_next_one_in_the_scenarios_precision():
    exchange = {"period": 4, "route": "ring", "precision": "fp16"}
    worker = worker_of({"name": "diloco", "exchange": exchange})
    for sender, iteration, step, tensor in (
        (2, 3, 0, values(2)),
        (2, 3, 0, values(2).bfloat16()),
        (2, 3, 0, values(3).half()),
        (2, 0, 0, values(2).half()),
        (2, 3, 1, values(2).half()),
        (1, 3, 0, values(2).half()),
    ):
        assert "ring" in refused(worker, Message(sender, MovedChunk(iteration, step), (tensor,)))
    for body, tensor in ((Mixed(3, 8), values()), (Moved(3, 8), values().half()), (Chunk(3, 0), values(2))):
        assert "none of its choices takes" in refused(worker, Message(2, body, (tensor,)))
    worker.handle(MessageArrived(Message(2, MovedChunk(3, 0), (values(2).half(),))), 1.0)


@pytest.mark.parametrize("system", ["dpsgd", "local_sgd", "diloco"])
@pytest.mark.parametrize("tensors", [(values(3),), (INDICES, values(2))], ids=["stretch", "entries"])
def test_parameters_are_whole(system, tensors):
    assert "other entries" in refused(worker_of(system), Message(1, Mixed(0, 8), tensors))


SERVED = {"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [0, 1]}}


@pytest.mark.parametrize(
    ("sender", "offset", "tensors"),
    [(3, 0, (values(),)), (3, 3, (values(3),)), (4, 0, (values(3),)), (3, 0, (INDICES, values(2)))],
    ids=["too much", "another's", "another's part", "entries"],
)
def test_a_server_sends_its_own_part(sender, offset, tensors):
    worker = worker_of(SERVED, mixing={3: 1.0, 4: 1.0})
    message = Message(sender, Pulled(0, 8, offset=offset), tensors)
    assert "other entries" in refused(worker, message)
    worker.handle(MessageArrived(Message(3, Pulled(0, 8), (values(3),))), 1.0)


@pytest.mark.parametrize("system", ["dpsgd", "local_sgd", "diloco", SERVED, "sparta"])
def test_a_gradient_is_not_taken_for_parameters(system):
    worker = worker_of(system, mixing={3: 1.0, 4: 1.0}) if system == SERVED else worker_of(system)
    sender = 3 if system == SERVED else 1
    assert "'contribution'" in refused(worker, Message(sender, Contribution(0, 8), (values(),)))


@pytest.mark.parametrize("system", ["baseline", "dlion", "ako"])
def test_parameters_are_not_taken_for_a_gradient(system):
    assert "'mixed_params'" in refused(worker_of(system), Message(1, Mixed(0, 8), (values(),)))


@pytest.mark.parametrize(
    ("sender", "iteration", "step", "count"),
    [(2, 0, 0, 3), (2, 0, 0, 1), (1, 0, 0, 2), (2, 0, 1, 2), (2, 1, 0, 2), (2, 0, 9, 2)],
    ids=["too long", "too short", "not the one before", "a later step", "a later iteration", "no step"],
)
def test_a_chunk_is_the_next_one_of_the_ring(sender, iteration, step, count):
    worker = worker_of("ring_allreduce")
    assert "ring" in refused(worker, Message(sender, Chunk(iteration, step), (values(count),)))
    assert "ring" in refused(worker, Message(2, Total(0, 0), (values(2),)))
    worker.handle(MessageArrived(Message(2, Chunk(0, 0), (values(2),))), 1.0)
    assert "ring" in refused(worker, Message(2, Chunk(0, 0), (values(2),)))


def test_a_chunk_is_of_the_present_bucket():
    worker = worker_of(
        {"name": "ring_allreduce", "exchange": {"kind": "ring_allreduce", "bucket_bytes": "1 B"}}, variables=(3, 3)
    )
    for offset, count in ((0, 1), (2, 1), (4, 1), (4, 2)):
        assert "ring" in refused(worker, Message(2, BucketChunk(0, 0, offset), (values(count),)))
    assert "ring" in refused(worker, Message(2, Chunk(0, 0), (values(1),)))
    worker.handle(MessageArrived(Message(2, BucketChunk(0, 0, 5), (values(1),))), 1.0)


def test_an_answer_comes_once_from_the_asked_peer():
    passive = worker_of("adpsgd", side=1)
    assert "not requested" in refused(passive, Message(1, Swap(True), (values(),)))
    (active,) = workers_of({"name": "adpsgd"}, [setup(side=0)])
    [asked] = [action.peer for action in active.handle(Started(), 0.0) if isinstance(action, Send)]
    active.handle(GradientReady(1.0, torch.zeros(P), 1.0), 1.0)
    assert "not requested" in refused(active, Message(3 - asked, Swap(True), (values(),)))
    assert "only asks" in refused(active, Message(asked, Swap(False), (values(),)))
    active.handle(MessageArrived(Message(asked, Swap(True), (values(),))), 1.0)
    assert active.iteration == 1


@pytest.mark.parametrize("system", ["dlion", "gaia", "hop", "ako", "baseline"])
def test_unused_kinds_are_refused_and_any_part_of_a_gradient_is_applied(system):
    """Kinds that a system does not use are refused, and any valid part of a gradient can be applied."""
    worker = worker_of({"name": system, "synchronization": "asynchronous"})
    for message in (
        Message(1, Contribution(0, 10**18, offset=3), (values(3),)),
        Message(1, Contribution(10**18, 1), (INDICES, values(2))),
        Message(1, Contribution(0, 1), (values(0),)),
        Message(1, Push(0, 8, 0), (values(),)),
        Message(1, Chunk(9, 9), (values(1),)),
        Message(1, Token(10**9)),
        Message(1, LossReport(10**9, float("nan"))),
        Message(1, ComputeProfile(1e6, 1e-300, 10**18)),
        Message(2, ComputeProfile(0.0, 1e6, 1)),
        Message(1, Weights(10**9), (values(),)),
        Message(1, WeightsRequest()),
    ):
        if any(type(message.body) in choice.receives for choice in worker.choices.all):
            worker.handle(MessageArrived(decode(message.encode(), workers=9, parameters=P)), 1.0)
        else:
            assert "none of its choices takes" in refused(worker, message)
    for _ in range(3):
        worker.handle(GradientReady(1.0, torch.zeros(P), 1.0), 2.0)
    assert worker.iteration > 0


def test_an_announcement_of_a_stranger_is_refused():
    assert "no peer" in refused(worker_of("gaia"), Message(7, Announcement(5), (INDICES,)))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message(0, Push(0, 8, 0), (values(),)), "other entries"),
        (Message(0, Push(0, 8, 0), (values(3),)), "other entries"),
        (Message(0, Push(0, 8, 3), (values(2),)), "other entries"),
        (Message(1, Push(0, 8, 3), (values(3),)), "a second gradient of iteration 0"),
        (Message(4, Push(0, 8, 3), (values(3),)), "no worker"),
    ],
)
def test_a_server_takes_a_gradient_of_its_part_from_each_worker_once(message, reason):
    replica = Replica(layout(3), torch.zeros(3), learning_rate=0.1)
    server = ParameterServer(4, 3, replica, 3, ParameterServerExchange.Parameters())
    server.handle(MessageArrived(Message(1, Push(0, 8, 3), (values(3),))), 1.0)
    assert reason in refused(server, message)
