"""Messages of which a part may be missing, over packets, against the closed form of their passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dlion_sim.simulation.packets.network import Bounded, PacketNetwork, Port, Raw
from tests.simulation.packets.networks import bound, cut
from tests.simulation.packets.test_closed_forms import FRAME, RATE, delivered

LATENCY = 0.05
PACKETS = 4000


def completion(loss: float, part: float, seed: int) -> float:
    """Seconds of a message over one link that loses packets at random, with a window that holds all of it."""
    network = PacketNetwork([Port(RATE)] * 2, seed=seed)
    endpoint = Bounded(initial_window=math.inf, least_timeout=0.01)
    connection = network.connect([(0,)], [(1,)], latency=LATENCY, loss=loss, endpoint=endpoint)
    network.send_cut(connection, cut(PACKETS), bound(PACKETS, part), header=0)
    (time,) = delivered(network).values()
    return time


@pytest.mark.parametrize("part", [0.0, 0.01, 0.1, 0.3])
def test_without_losses_the_time_is_that_of_the_required_part(part):
    enough = PACKETS - int(part * PACKETS)
    assert completion(0.0, part, 0) == pytest.approx(enough * FRAME / RATE + LATENCY, rel=1e-3)


@pytest.mark.parametrize(("loss", "part"), [(0.02, 0.1), (0.09, 0.1), (0.2, 0.1), (0.3, 0.1), (0.3, 0.02), (0.5, 0.1)])
def test_the_number_of_passes_is_the_logarithm_of_the_bound_to_the_base_of_the_loss(loss, part):
    """Each pass but the last ends by two round trips: of feedback, then of PROBE and BITMAP; and one more where its own
    end was lost, so that feedback on it does not come. Of the last pass as much is sent as is needed."""
    passes = max(1, math.ceil(math.log(part) / math.log(loss)))
    whole = PACKETS * FRAME / RATE
    expected = sum(whole * loss**k + (2 + loss) * 2 * LATENCY for k in range(passes - 1)) + LATENCY
    expected += (loss ** (passes - 1) - part) / (1 - loss) * whole
    taken = np.mean([completion(loss, part, seed) for seed in range(10)])
    assert taken == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize("seed", range(5))
def test_a_message_completes_however_long_urgent_packets_block_its_host(seed):
    """Each burst takes the NIC for many times the timeout, and packets and answers around it are lost."""
    network = PacketNetwork([Port(RATE)] * 2, seed=seed)
    endpoint = Bounded(initial_window=3, least_timeout=1e-4)
    connection = network.connect([(0,)], [(1,)], latency=1e-4, loss=0.3, loss_back=0.3, endpoint=endpoint)
    urgent = network.connect([(0,)], endpoint=Raw())
    message = network.send_cut(connection, cut(200, priority=7), bound(200, 0.0), header=0)
    for burst in range(100):
        network.send(urgent, 50_000)
        if message in delivered(network, 0.01 * (burst + 1)):
            return
    assert message in delivered(network)
