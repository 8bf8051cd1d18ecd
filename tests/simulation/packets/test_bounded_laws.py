"""Messages of which a part may be missing, over packets, against the closed form of their passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dlion_sim.simulation.packets.network import Bounded, PacketNetwork, Port
from dlion_sim.transport.bounds import Bound
from dlion_sim.transport.cutting import PAYLOAD, Cut
from tests.simulation.packets.test_closed_forms import FRAME, RATE, delivered

LATENCY = 0.05
PACKETS = 4000


def completion(loss: float, bound: float, seed: int) -> float:
    """Seconds of a message over one link that loses packets at random, with a window that holds all of it."""
    network = PacketNetwork([Port(RATE)] * 2, seed=seed)
    endpoint = Bounded(initial_window=math.inf, least_timeout=0.01)
    connection = network.connect([(0,)], [(1,)], latency=LATENCY, loss=loss, endpoint=endpoint)
    cut = Cut(
        payloads=np.full(PACKETS, PAYLOAD, np.int64),
        variable=np.zeros(PACKETS, np.int32),
        large=np.zeros(PACKETS, np.bool_),
        priority=np.zeros(PACKETS, np.int8),
        protected=np.ones(PACKETS, np.bool_),
        order=np.arange(PACKETS, dtype=np.int32),
    )
    allowed = np.array([int(bound * PACKETS) * PAYLOAD])
    network.send_cut(connection, cut, Bound(np.zeros(PACKETS, np.int32), allowed), header=0)
    (time,) = delivered(network).values()
    return time


@pytest.mark.parametrize("bound", [0.0, 0.01, 0.1, 0.3])
def test_without_losses_a_message_is_there_when_enough_of_it_is(bound):
    enough = PACKETS - int(bound * PACKETS)
    assert completion(0.0, bound, 0) == pytest.approx(enough * FRAME / RATE + LATENCY, rel=1e-3)


@pytest.mark.parametrize(("loss", "bound"), [(0.02, 0.1), (0.09, 0.1), (0.2, 0.1), (0.3, 0.1), (0.3, 0.02), (0.5, 0.1)])
def test_it_takes_so_many_passes_as_the_bound_is_powers_of_the_loss(loss, bound):
    """Each pass but the last ends by two round trips: of feedback, then of PROBE and BITMAP; and one more where its own
    end was lost, so that feedback on it does not come. Of the last pass as much is sent as is needed."""
    passes = max(1, math.ceil(math.log(bound) / math.log(loss)))
    whole = PACKETS * FRAME / RATE
    expected = sum(whole * loss**k + (2 + loss) * 2 * LATENCY for k in range(passes - 1)) + LATENCY
    expected += (loss ** (passes - 1) - bound) / (1 - loss) * whole
    taken = np.mean([completion(loss, bound, seed) for seed in range(10)])
    assert taken == pytest.approx(expected, rel=0.04)
