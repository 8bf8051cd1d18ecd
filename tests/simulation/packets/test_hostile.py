"""Forged states of networks: compiled code stays within its arrays."""

import copy
import pickle

import numpy as np
import pytest

from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.network import Bounded, PacketNetwork, Raw, Reliable
from dlion_sim.simulation.packets.state import ARRAYS
from tests.simulation.packets.networks import Star, bound, cut


@pytest.fixture(scope="module")
def busy() -> PacketNetwork:
    """With packets on wires, in queues, on their way and lost, of each kind of connection."""
    star = Star(4, switches=[12e3], switch=0, drop_above=6e3, mark_above=6e3, seed=2)
    for sender in range(3):
        star.network.send(star.connect(sender, 3, latency=0.001, loss=0.02, endpoint=Reliable()), 300_000)
        star.network.send(star.connect(sender, 3, latency=0.001, endpoint=Raw()), 30_000)
        connection = star.connect(sender, 3, latency=0.001, endpoint=Bounded())
        star.network.send_cut(connection, cut(90, protected=False), bound(90, 0.1), header=9)
    star.network.run(0.004)
    return star.network


@pytest.fixture
def network(busy):
    return copy.deepcopy(busy)


def test_a_valid_state_is_accepted_and_continues_alike(busy, network):
    network.check_restored()
    again = pickle.loads(pickle.dumps(network))
    again.check_restored()
    assert again.run(5.0) == network.run(5.0)


NUMBERS = {
    "state": ("next_free", "free", "entries", "commands", "noted"),
    "ports": ("sending", "switch", "waiting", "ready"),
    "queues": ("first", "last", "ready_first", "ready_last"),
    "pipes": ("first", "last"),
    "connections": (
        *("kind", "priority", "nic", "path", "paths", "turn", "back", "backs", "back_turn", "pipe", "back_pipe"),
        *("is_ready", "first", "sending", "arriving", "newest", "slots", "room", "oldest", "latest", "lost_first"),
        *("endpoint", "pieces", "count", "groups", "group_count", "acknowledged", "expected", "next"),
    ),
    "packets": ("connection", "message", "path", "hop", "priority", "next", "number"),
    "messages": ("next", "connection"),
    "heap": ("of",),
    "senders": ("packets", "position"),
    "slots": ("next", "previous", "message"),
}
CASES = [(array, field, value) for array, fields in NUMBERS.items() for field in fields for value in (-7, 10**6)]
CASES += [("connections", "payload", 0), ("packets", "size", 0)]


@pytest.mark.parametrize(("array", "field", "value"), CASES)
def test_an_index_out_of_bounds_is_refused(network, array, field, value):
    """In the place of all that are in use."""
    if field == "is_ready":
        value = not network._memory[array][field][0]
    elif network._memory[array][field].dtype.itemsize == 1:
        value %= 256
    network._memory[array][field][: network._memory.used(array) or None] = value
    with pytest.raises(ValueError, match=r"packets|lists?|connections|segments"):
        network.check_restored()


@pytest.mark.parametrize("array", ["paths", "order", "group", "urgency"])
def test_numbers_of_a_plain_array_are_checked(network, array):
    network._memory[array][:] = 120
    with pytest.raises(ValueError, match="out of bounds"):
        network.check_restored()


def test_a_list_without_an_end_is_refused(network):
    """A queue whose last packet is followed by its first."""
    memory = network._memory
    queue = next(each for each in memory["queues"] if each["first"] != -1)
    memory["packets"]["next"][queue["last"]] = queue["first"]
    with pytest.raises(ValueError, match="elsewhere"):
        network.check_restored()


def test_a_packet_in_two_places_is_refused(network):
    memory = network._memory
    sending = [int(each) for each in memory["ports"]["sending"] if each != -1]
    memory["state"]["next_free"][0] = sending[0]
    with pytest.raises(ValueError, match="elsewhere"):
        network.check_restored()


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "change",
    {
        "other type": lambda array: np.zeros(array.shape, np.float16),
        "fewer": lambda array: array[:0],
        "reversed": lambda array: np.concatenate([array, array])[::-2],
        "no array": list,
    }.items(),
    ids=lambda change: change[0],
)
def test_other_arrays_are_refused(network, name, change):
    what, changed = change
    state = network._memory.__getstate__()
    arrays = {**state["_arrays"], name: changed(state["_arrays"][name])}
    used = state["_used"]
    if what == "fewer" and not used[name]:
        used = {**used, name: 1}
    with pytest.raises(ValueError, match="of packets are no"):
        Memory.__new__(Memory).__setstate__({"_arrays": arrays, "_used": used})


def test_numbers_outside_of_the_arrays_are_checked(network):
    for give in (
        lambda: network._unused.append(10**6),
        lambda: network._pipes.update({(0, 1.0): 99}),
        lambda: network._paths.update({((0,),): -1}),
    ):
        kept = copy.deepcopy(network.__dict__)
        give()
        with pytest.raises(ValueError, match="out of bounds"):
            network.check_restored()
        network.__dict__.update(kept)
    network.check_restored()
    with pytest.raises(ValueError, match="there is no connection 99"):
        network.send(99, 1)
