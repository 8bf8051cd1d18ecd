"""Well-formed messages that no correct peer sends: refused, with nothing changed."""

import re

import pytest
import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.batching.weighted_dynamic import ComputeProfile
from dlion_sim.protocol.events import GradientReady, MessageArrived, ProfileReady, Send, Started
from dlion_sim.protocol.exchange.async_local_sgd import AsyncLocalSgdExchange, PseudoGradient
from dlion_sim.protocol.exchange.halos import GlobalAnswer, RegionPseudoGradient
from dlion_sim.protocol.exchange.hosted import Answer
from dlion_sim.protocol.exchange.pairwise import Swap
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange, Pulled, Push
from dlion_sim.protocol.exchange.periodic import Moved, MovedChunk
from dlion_sim.protocol.exchange.ring import BucketChunk, Total
from dlion_sim.protocol.exchange.ring_sum import Chunk
from dlion_sim.protocol.exchange.significance import Announcement
from dlion_sim.protocol.exchange.sparse_loco import Packed
from dlion_sim.protocol.exchange.sparta import Scattered
from dlion_sim.protocol.exchange.streaming_diloco import Fragment
from dlion_sim.protocol.knowledge.direct import LossReport, WeightsRequest
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message, Mixed, Weights, decode
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.synchronization.policies import Token
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


SERVED = {"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [0, 1]}}
RING = {"kind": "ring_allreduce", "bucket_bytes": "1 B"}
HALF, CODES = torch.float16, torch.uint8


def of_halves(name, **exchange):
    return {"name": name, "exchange": {"precision": "fp16", **exchange}}


REFUSED = {
    "pseudo-gradients in single precision": (
        of_halves("local_sgd"),
        {},
        [
            (1, Moved(0, 8), values(3).half()),
            (1, Moved(0, 8), values().bfloat16()),
            (1, Mixed(0, 8), values()),
        ],
        (1, Moved(0, 8), values().half()),
    ),
    "pseudo-gradients of another precision": (
        {"name": "diloco", "exchange": {"precision": "bf16"}},
        {},
        [(1, Moved(0, 8), values().half()), (1, Mixed(0, 8), values())],
        (1, Moved(0, 8), values().bfloat16()),
    ),
    "parts of parameters, or half of their bits": (
        {"name": "local_sgd", "exchange": {"period": 1}},
        {},
        [
            (1, Moved(0, 8), values().half()),
            (1, Mixed(0, 8), values(3)),
            (1, Mixed(0, 8), INDICES, values(2)),
            (1, Contribution(0, 8), values()),
        ],
        (1, Mixed(0, 8), values()),
    ),
    "parts of mixed parameters": (
        "dpsgd",
        {},
        [
            (1, Mixed(0, 8), values(3)),
            (1, Mixed(0, 8), INDICES, values(2)),
            (1, Contribution(0, 8), values()),
        ],
        (1, Mixed(0, 8), values()),
    ),
    "parameters for a gradient": (
        "baseline",
        {},
        [(1, Mixed(0, 8), values()), (7, Contribution(0, 8), values())],
        (1, Contribution(0, 8), values()),
    ),
    "parameters for a part of a gradient": (
        "ako",
        {},
        [(1, Mixed(0, 8), values())],
        (1, Contribution(0, 8, offset=2), values(3)),
    ),
    "an announcement of a stranger": (
        "gaia",
        {},
        [(7, Announcement(5), INDICES)],
        (1, Announcement(5), INDICES),
    ),
    "other chunks of pseudo-gradients": (
        of_halves("diloco", period=4, route="ring"),
        {},
        [
            (2, MovedChunk(3, 0), values(2)),
            (2, MovedChunk(3, 0), values(2).bfloat16()),
            (2, MovedChunk(3, 0), values(3).half()),
            (2, MovedChunk(0, 0), values(2).half()),
            (2, MovedChunk(3, 1), values(2).half()),
            (1, MovedChunk(3, 0), values(2).half()),
            (2, Mixed(3, 8), values()),
            (2, Moved(3, 8), values().half()),
            (2, Chunk(3, 0), values(2)),
        ],
        (2, MovedChunk(3, 0), values(2).half()),
    ),
    "chunks of another bucket": (
        {"name": "ring_allreduce", "exchange": RING},
        {"variables": (3, 3)},
        [
            *((2, BucketChunk(0, 0, offset), values(count)) for offset, count in ((0, 1), (2, 1), (4, 1), (4, 2))),
            (2, Chunk(0, 0), values(1)),
        ],
        (2, BucketChunk(0, 0, 5), values(1)),
    ),
    "another server's part": (
        SERVED,
        {"mixing": {3: 1.0, 4: 1.0}},
        [
            (3, Pulled(0, 8), values()),
            (3, Pulled(0, 8, offset=3), values(3)),
            (4, Pulled(0, 8), values(3)),
            (3, Pulled(0, 8), INDICES, values(2)),
            (3, Contribution(0, 8), values()),
        ],
        (3, Pulled(0, 8), values(3)),
    ),
    "other entries than are averaged": (
        "sparta",
        {},
        [*((1, Scattered(0, 8), values(count)) for count in (0, 2, 6)), (1, Contribution(0, 8), values())],
        (1, Scattered(0, 8), values(1)),
    ),
    "other entries of a pseudo-gradient": (
        {"name": "sparse_loco", "exchange": {"period": 3}},
        {},
        [
            (1, Packed(iteration, 8), values(4), torch.tensor(packed, dtype=CODES))
            for iteration, packed in ((1, [0, 0]), (2, [0]), (2, [0, 0, 0]), (2, [255, 255]), (2, [6 << 2, 0]))
        ],
        (1, Packed(2, 8), values(4), torch.zeros(2, dtype=CODES)),
    ),
    "another fragment": (
        {"name": "streaming_diloco", "exchange": {"precision": "fp32", "period": 6, "delay": 0}},
        {},
        [
            (1, Fragment(2, 8), values(3)),
            (1, Fragment(2, 8), values(4).half()),
            (1, Fragment(1, 8), values(4)),
            (1, Fragment(2, 8), values(1), torch.ones(4, dtype=CODES)),
        ],
        (1, Fragment(2, 8), values(4)),
    ),
    "another publication": (
        {"name": "decoupled_diloco", "exchange": {"period": 4, "fragments": 1, "delay": 1}},
        {},
        [
            (1, PseudoGradient(2, 8, 0, 1.0), values()),
            (1, PseudoGradient(3, 8, 0, 1.0), values(5)),
            (1, Answer(3), values(5)),
        ],
        (1, PseudoGradient(3, 8, 0, 1.0), values()),
    ),
    "another region's pseudo-gradient": (
        "halos",
        {"workers": 4, "regions": ("a", "a", "b", "b")},
        [
            (2, PseudoGradient(0, 8, 0, 1.0), values()),
            (1, PseudoGradient(0, 8, 0, 1.0), values(3)),
            (2, RegionPseudoGradient(0, 8, 0, 1.0), values().half()),
            (1, Answer(0), values()),
            (1, GlobalAnswer(0), values(3)),
        ],
        (1, PseudoGradient(0, 8, 0, 1.0), values()),
    ),
}
"""By what is wrong: the system, keys of its setup, invalid messages (sender, body, tensors), and a valid one."""


REASONS = "|".join(
    (
        "other entries",
        "another number of entries",
        "takes (a|no) message",
        "no (peer|worker)",
        "not the next one",
        "in which none is",
        "beyond the model",
        "another region",
        "to no pseudo-gradient",
        "without all",
        "a second gradient",
    )
)


def message(sender, body, *tensors):
    return Message(sender, body, tensors)


@pytest.mark.parametrize("case", REFUSED)
def test_messages_that_no_correct_peer_sends_are_refused(case):
    system, keys, invalid, valid = REFUSED[case]
    worker = worker_of(system, **keys)
    for each in invalid:
        assert re.search(REASONS, refused(worker, message(*each)))
    worker.handle(MessageArrived(message(*valid)), 1.0)


SERVER_REFUSES = {
    "a gradient of other entries, twice, or of no worker": (
        ParameterServerExchange.Parameters(),
        [
            (0, Push(0, 8, 0), values()),
            (0, Push(0, 8, 0), values(3)),
            (0, Push(0, 8, 3), values(2)),
            (1, Push(0, 8, 3), values(3)),
            (4, Push(0, 8, 3), values(3)),
            (0, PseudoGradient(0, 8, 3, 1.0), values(3)),
        ],
        (1, Push(0, 8, 3), values(3)),
    ),
    "a pseudo-gradient of other entries, or a gradient": (
        AsyncLocalSgdExchange.Parameters(),
        [
            (0, PseudoGradient(0, 8, 0, 1.0), values(3)),
            (0, PseudoGradient(0, 8, 3, 1.0), values(2)),
            (0, PseudoGradient(0, 8, 3, 1.0), values(3).half()),
            (0, PseudoGradient(0, 8, 3, 1.0), values(1), torch.ones(3, dtype=CODES)),
            (0, Push(0, 8, 3), values(3)),
        ],
        (1, PseudoGradient(0, 8, 3, 1.0), values(3)),
    ),
}


@pytest.mark.parametrize("case", SERVER_REFUSES)
def test_a_server_refuses_what_is_not_of_its_part(case):
    parameters, invalid, valid = SERVER_REFUSES[case]
    server = ParameterServer(4, 3, Replica(layout(3), torch.zeros(3), learning_rate=0.1), 3, parameters)
    server.handle(MessageArrived(message(*valid)), 1.0)
    for each in invalid:
        assert re.search(REASONS, refused(server, message(*each)))


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
