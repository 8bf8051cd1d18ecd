"""Forged checkpoints: nothing that they contain is executed."""

import operator
import os
import pickle
import shutil
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest
import torch

from dlion_sim.protocol.messages import Channel
from dlion_sim.results import atomic
from dlion_sim.results.run_folder import CHECKPOINT
from dlion_sim.simulation import simulate
from dlion_sim.simulation.checkpointing import decoding, file
from dlion_sim.simulation.checkpointing.encoding import encode
from dlion_sim.simulation.checkpointing.kinds import Kinds
from dlion_sim.simulation.engine import Engine
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import LeafSpine, Route, Routing
from dlion_sim.simulation.sharing import SharedLinks
from tests.simulation.checkpointing.test_checkpoint import After, refusal, scenario


class Calls:
    """Pickled, it is a call."""

    def __init__(self, function, *arguments, state=None):
        self.made = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.made


class Restored:
    """Runs something when it is given its state."""

    def __setstate__(self, state):
        Path(state["canary"]).touch()


def by_instance(canary):
    """The opcodes INST and OBJ of the first protocols, which no pickler uses any more."""
    return b"(S'touch %s'\nios\nsystem\n." % str(canary).encode()


def by_object(canary):
    return b"(cos\nsystem\nS'touch %s'\no." % str(canary).encode()


def by_persistent_id(canary):
    return b"Ptouch %s\n." % str(canary).encode()


def by_extension(canary):
    return b"\x82\x01)R."


def restored(canary):
    thing = Restored()
    thing.canary = str(canary)
    return pickle.dumps(thing)


def torch_in_torch(canary):
    inner = canary.with_suffix(".inner")
    torch.save(Calls(os.system, f"touch {canary}"), inner)
    return pickle.dumps(Calls(partial(torch.load, weights_only=False), str(inner)))


def dumped(function, *arguments, **options):
    return lambda canary: pickle.dumps(
        Calls(function, *(each.format(canary=canary) if isinstance(each, str) else each for each in arguments)),
        **options,
    )


HOSTILE = {
    **{f"os.system, protocol {n}": dumped(os.system, "touch {canary}", protocol=n) for n in range(6)},
    "eval": dumped(eval, "open('{canary}', 'w')"),
    "exec": dumped(exec, "open('{canary}', 'w')"),
    "subprocess": lambda canary: pickle.dumps(Calls(subprocess.run, ["touch", str(canary)])),
    "a getattr chain": lambda canary: pickle.dumps(
        Calls(operator.methodcaller("touch"), Calls(getattr, Calls(Path, str(canary)), "parent"))
    ),
    "a path's own method": lambda canary: pickle.dumps(Calls(Path(canary).touch)),
    "a function of this package that writes": lambda canary: pickle.dumps(Calls(atomic.write, canary, b"written")),
    "a class with a __setstate__": restored,
    "torch.load": torch_in_torch,
    "INST": by_instance,
    "OBJ": by_object,
    "a persistent id": by_persistent_id,
    "an extension": by_extension,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return simulate(scenario("ako", "2 s"), tmp_path_factory.mktemp("hostile") / "run", interrupted=After(30)).folder


@pytest.fixture
def folder(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "run"))


def refused(folder, canary):
    """The error message for the folder's checkpoint, which executes nothing and changes nothing."""
    message = str(refusal(folder, "is no checkpoint that can be read"))
    assert not canary.exists()
    assert "\n" not in message
    return message


def forge(folder, state: bytes):
    """Replace the checkpoint's state, with a valid header and checksums."""
    with (folder / CHECKPOINT).open("rb") as stream:
        header = file.read_header(stream)
    header = msgspec.structs.replace(header, state=len(state), blocks=())
    file.write(folder / CHECKPOINT, header, memoryview(state), [])


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_state_is_refused(folder, tmp_path, case):
    """As the state of a checkpoint, and in place of the file."""
    hostile = HOSTILE[case](tmp_path / "canary")
    forge(folder, hostile)
    refused(folder, tmp_path / "canary")
    (folder / CHECKPOINT).write_bytes(hostile)
    refused(folder, tmp_path / "canary")


def test_a_file_of_torch_is_refused(folder, tmp_path):
    for zipped in (True, False):
        hostile = Calls(os.system, f"touch {tmp_path / 'canary'}")
        torch.save(hostile, folder / CHECKPOINT, _use_new_zipfile_serialization=zipped)
        refused(folder, tmp_path / "canary")
    torch.jit.script(torch.nn.Linear(1, 1)).save(folder / CHECKPOINT)
    refused(folder, tmp_path / "canary")


ENGINE = "dlion_sim.simulation.engine:Engine"
MISUSED = {
    "a class that is not listed": Calls(decoding.instance, "dlion_sim.results.writing:RunWriter"),
    "a class that is not listed, called": Calls(decoding.instance, "pathlib:Path", "canary"),
    "a class of a module": Calls(decoding.kind, "subprocess:Popen"),
    "a module's attribute": Calls(decoding.kind, "dlion_sim.simulation.engine:time.sleep"),
    "a method that is not listed": Calls(decoding.method, Calls(decoding.instance, ENGINE), "run"),
    "a method of a list": Calls(decoding.method, [1], "clear"),
    "a call of a maker": Calls(decoding.partial, decoding.instance, (ENGINE,), {}),
    "a call of a class": Calls(decoding.partial, Calls(decoding.kind, ENGINE), (), {}),
    "a state in a method's place": Calls(decoding.instance, ENGINE, state={"run": 1}),
    "a state that sets itself": Calls(decoding.instance, ENGINE, state={"__setstate__": 1}),
    "another class": Calls(decoding.instance, ENGINE, state=(None, {"__class__": Calls(decoding.kind, ENGINE)})),
    "a channel that is changed": Calls(
        decoding.instance, "dlion_sim.protocol.messages:Channel", 1, state={"_value_": 7}
    ),
    "a class that is changed": Calls(decoding.kind, ENGINE, state=(None, {"run": 1})),
    "objects in an array": Calls(decoding.array, 0, "|O", (1,), "C"),
    "objects in a scalar": Calls(decoding.scalar, "|O", b"12345678"),
    "no block": Calls(decoding.array, 0, "<f8", (1,), "C"),
    "a factory": Calls(decoding.default, "eval"),
    "an unhashable key": {(): Calls(decoding.counter)},
    "no engine": [1, 2, 3],
    "nothing": None,
}


@pytest.mark.parametrize("case", MISUSED)
def test_permitted_names_cannot_be_misused(folder, tmp_path, case):
    forge(folder, pickle.dumps(MISUSED[case]))
    kept = dict(vars(Engine)), dict(vars(Channel.DATA)), decoding.kind.__defaults__
    refused(folder, tmp_path / "canary")
    assert (dict(vars(Engine)), dict(vars(Channel.DATA)), decoding.kind.__defaults__) == kept


def test_decoded_objects_are_not_called():
    """Not even a method that may be scheduled."""
    called = []

    class Listening(Kinds):
        def method(self, owner, name):
            return called.append

    event_queue = Calls(decoding.instance, f"{EventQueue.__module__}:EventQueue")
    state = (
        pickle.dumps(Calls(decoding.method, event_queue, "step"))[:-1]
        + pickle.EMPTY_TUPLE
        + pickle.REDUCE
        + pickle.STOP
    )
    with pytest.raises(ValueError, match="it calls a builtin"):
        decoding.Decoder(Listening(), []).decode(state)
    assert not called


def route_elsewhere(transport):
    routing = transport._routing
    between = next(pair for pair, route in routing._between.items() if route.links)
    routing._between[between] = Route((10**6,), 0.0)


def route_by_other_places(transport):
    """A mapping, whose numbers in order are not what it leads to."""
    transport._routing._up = dict.fromkeys(transport._routing._up, 10**6)


def route_over_fewer_links(transport):
    vars(transport._routing).update(capacities_bps=[], _up=[], _down=[], _between={})


def have_other_capacities(transport):
    transport._network.bytes_per_second.pop()


def have_no_links(transport):
    transport._network._links = transport._network


def have_names_of_fewer_links(transport):
    transport._routing.names.pop()


def cross_a_spine_that_is_not_there(transport):
    last = len(transport._routing.capacities_bps)
    transport._routing._fabrics["east"] = LeafSpine({0: 0, 1: 1}, [(last,), (last,)], [(last,), (last,)])


def cross_spines_by_other_places(transport):
    """A mapping, whose keys are links that there are, and whose values are not."""
    routing = transport._routing
    *routing._up, last = routing._up
    routing._fabrics["east"] = LeafSpine({0: (last,), 1: 1}, {(last,): (10**6,)}, [])


MISLEADING = {
    "names of fewer links": have_names_of_fewer_links,
    "over a spine that is not there": cross_a_spine_that_is_not_there,
    "over spines by other places": cross_spines_by_other_places,
    "up over no link": lambda transport: transport._routing._up.__setitem__(0, 10**6),
    "down over a link before the first": lambda transport: transport._routing._down.__setitem__(0, -3),
    "over a link of another": lambda transport: transport._routing._up.__setitem__(0, transport._routing._up[1]),
    "between clouds over no link": route_elsewhere,
    "by other places": route_by_other_places,
    "over fewer links": route_over_fewer_links,
    "capacities of other links": have_other_capacities,
    "no links": have_no_links,
}


def reforge(folder, change):
    """Change the engine in the checkpoint, with a valid header and checksums."""
    with (folder / CHECKPOINT).open("rb") as stream:
        header = file.read_header(stream)
        state, blocks = file.read_state(stream, header)
    engine = decoding.Decoder(Kinds(), blocks).decode(state)
    change(engine)
    state, blocks = encode(engine, Kinds())
    header = msgspec.structs.replace(header, state=len(state), blocks=tuple(block.nbytes for block in blocks))
    file.write(folder / CHECKPOINT, header, state, blocks)


@pytest.mark.parametrize("case", MISLEADING)
def test_routes_over_missing_links_are_refused(folder, tmp_path, case):
    reforge(folder, lambda engine: MISLEADING[case](engine._transport))
    assert "links" in refused(folder, tmp_path / "canary")


def shapes(*further, kind=tuple):
    """One of as many entries as make up for `further`."""

    def change(replica):
        shapes = kind([len(replica.parameters) - sum(map(sum, further))]), *further
        object.__setattr__(replica.layout, "shapes", shapes)
        object.__setattr__(replica.layout, "names", tuple(map(str, range(len(shapes)))))

    return change


def parameters(change):
    def changed(replica):
        replica._state.parameters = change(replica.parameters)

    return changed


ASTRAY = {
    "lengths below zero": (shapes((-(10**6),)), "variables of no length"),
    "lengths that are no numbers": (shapes((True,)), "variables of no length"),
    "shapes by other places": (shapes(kind=list), "no variables with shapes"),
    "fewer parameters": (parameters(lambda own: own[:7]), "other parameters than its layout's"),
    "parameters of other width": (parameters(torch.Tensor.double), "other parameters than its layout's"),
    "one parameter for all": (parameters(lambda own: own[:1].expand(len(own))), "do not lie side by side"),
}


@pytest.mark.parametrize("case", ASTRAY)
def test_parameters_that_contradict_their_layout_are_refused(folder, tmp_path, case):
    change, words = ASTRAY[case]
    reforge(folder, lambda engine: change(engine._nodes[0].worker.replica))
    assert words in refused(folder, tmp_path / "canary")


@pytest.mark.parametrize("link", [-1, 2])
def test_a_scheduled_change_of_a_missing_link_is_refused(link):
    with pytest.raises(ValueError, match=f"there is no link {link} among 2"):
        SharedLinks([1.0, 1.0]).resize(link, 1.0)


def test_checked_objects_cannot_be_changed_afterwards():
    late = []
    state = {"capacities_bps": [], "names": [], "_up": late, "_down": [], "_between": {}, "_fabrics": {}}
    routing = Calls(decoding.instance, f"{Routing.__module__}:Routing", state=state)
    forged = pickle.dumps((routing, late))
    decoding.Decoder(Kinds(), []).decode(forged)
    before, end, _ = forged.rpartition(pickle.TUPLE2)
    forged = before + pickle.BININT1 + b"\x07" + pickle.APPEND + end + pickle.STOP  # `late` is the last on the stack
    with pytest.raises(ValueError, match="do not exist"):
        decoding.Decoder(Kinds(), []).decode(forged)


@pytest.mark.parametrize("other", [0, -1])
def test_arrays_share_no_memory(other):
    arrays = [Calls(decoding.array, block, "<f8", (1,), "C") for block in (0, other)]
    with pytest.raises(ValueError, match="shares its memory"):
        decoding.Decoder(Kinds(), [torch.zeros(8, dtype=torch.uint8)]).decode(pickle.dumps(arrays))


@pytest.mark.parametrize(
    "junk", [b"", b"\x80\x05.", b"\x80\x05K\x01", b"h\x07.", b"\x80\x05K\x01e.", bytes(1000), b"\xff" * 99]
)
def test_a_garbled_state_is_refused(folder, tmp_path, junk):
    forge(folder, junk)
    refused(folder, tmp_path / "canary")


def test_a_file_that_claims_to_be_huge_is_refused_before_memory_is_taken(folder, tmp_path):
    path = folder / CHECKPOINT
    with path.open("rb") as stream:
        header = file.read_header(stream)
    for claim in ({"blocks": (2**60,)}, {"state": 2**60}):
        file.write(path, msgspec.structs.replace(header, **claim), memoryview(b""), [])
        refused(folder, tmp_path / "canary")
    for length in (2**40, 2**64 - 1):
        path.write_bytes(b"dlion_sim checkpoint 3\n" + length.to_bytes(8, "little") + bytes(100))
        refused(folder, tmp_path / "canary")


@pytest.mark.parametrize("place", [0.001, 0.2, 0.5, 0.8, 0.999])
def test_a_flipped_bit_is_noticed(folder, tmp_path, place):
    content = bytearray((folder / CHECKPOINT).read_bytes())
    content[int(place * len(content))] ^= 4
    (folder / CHECKPOINT).write_bytes(content)
    refused(folder, tmp_path / "canary")


def test_the_hostile_cases_are_executed_if_pickles_are_trusted(tmp_path):
    """Otherwise they would prove nothing."""
    ran = 0
    for number, case in enumerate(HOSTILE):
        canary = tmp_path / f"canary{number}"
        with suppress(Exception):
            pickle.loads(HOSTILE[case](canary))
        ran += canary.exists()
    assert ran >= 12
