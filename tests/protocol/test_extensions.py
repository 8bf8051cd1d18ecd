"""The code on the page on one's own systems works; unusable choices are refused with a reason."""

import re
import sys
from pathlib import Path

import pytest
import torch
import yaml

from dlion_sim.errors import InputError, OwnCodeError
from dlion_sim.live import gather
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.messages import BODIES, MalformedMessageError, Message, decode
from dlion_sim.results import Run
from dlion_sim.scenario import SystemSpec, dump
from dlion_sim.simulation import resume, simulate
from dlion_sim.simulation.checkpointing.kinds import Kinds, UnknownKindError
from tests.command import dlion
from tests.live.test_driver import brief
from tests.live.together import Together
from tests.simulation.checkpointing.test_checkpoint import After, check_same
from tests.simulation.scenarios import digits

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text()


@pytest.fixture
def gossip(tmp_path, monkeypatch):
    """The page's file, in the current folder."""
    yield from put_there("gossip", tmp_path, monkeypatch)


@pytest.fixture
def halves(tmp_path, monkeypatch):
    """The page's other file, with a message of its own."""
    yield from put_there("halves", tmp_path, monkeypatch)
    BODIES.pop("half", None)


def put_there(name, folder, monkeypatch):
    """One of the page's files, in the current folder."""
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if f"class {name.title()}" in each)
    (folder / f"{name}.py").write_text(code)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield
    sys.modules.pop(name, None)


def written(name):
    """What the page's scenario that names a file says of its system."""
    (text,) = (each for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if name in each)
    return yaml.safe_load(text)["system"]


def spec(system) -> SystemSpec:
    return SystemSpec.model_validate(system)


def test_the_choice_of_the_page_runs(gossip, tmp_path):
    run = simulate(digits(system=written("gossip")), tmp_path / "run")
    assert run.summary["accuracy"]["mean"] > 0.5
    assert run.scenario["system"]["exchange"] == {"kind": "gossip:Gossip", "fanout": 2}
    # Of three workers, each tells its two peers; of one peer an iteration, half as much.
    half = simulate(digits("system.exchange.fanout=1", system=written("gossip")), tmp_path / "half")
    per_iteration = [each.summary["bytes_sent"] / sum(each.summary["iterations"]["per_worker"]) for each in (run, half)]
    assert per_iteration[1] == pytest.approx(per_iteration[0] / 2, rel=0.05)


@pytest.fixture
def interrupted(gossip, tmp_path):
    """A run with the page's choice that was ended early."""
    return simulate(digits(system="gossip:GOSSIP"), tmp_path / "run", interrupted=After(100)).folder


def test_a_run_with_the_choice_of_the_page_resumes_to_the_bit(interrupted, tmp_path):
    check_same(resume(interrupted), simulate(digits(system="gossip:GOSSIP"), tmp_path / "whole"))


def test_a_run_is_not_resumed_with_an_edited_choice(interrupted, tmp_path):
    sys.modules.pop("gossip")
    with (tmp_path / "gossip.py").open("a") as file:
        file.write("# changed\n")
    with pytest.raises(InputError, match=r"was saved with gossip .*, and here is"):
        resume(interrupted)


def test_a_checkpoint_may_name_only_classes_that_the_users_module_defines(gossip):
    own = compose(spec("gossip:GOSSIP")).own_modules
    assert own == {"gossip"}
    assert Kinds(own).named("gossip:Gossip.Parameters").__module__ == "gossip"
    for name in ("gossip:stream", "gossip:GOSSIP", "gossip:LocalGradient", "gossip:Gossip.outgoing", "os:system"):
        with pytest.raises(UnknownKindError):
            Kinds(own).named(name)
    with pytest.raises(UnknownKindError):
        Kinds().named("gossip:Gossip")


def test_a_module_of_this_package_is_not_the_users():
    """Else a scenario that names one would let a checkpoint name all its classes."""
    given = {"name": "baseline", "exchange": "dlion_sim.protocol.joining:ServedExchange"}
    assert not compose(spec({**given, "topology": "parameter_server"})).own_modules


def test_a_choice_with_a_state_that_cannot_be_saved_is_refused(gossip, tmp_path):
    file = tmp_path / "gossip.py"
    kept = "self.file = open(__file__)  # noqa"
    file.write_text(file.read_text().replace("        self.rng", f"        {kept}\n        self.rng", 1))
    with pytest.raises(InputError, match="keeps a _io:TextIOWrapper, which a checkpoint cannot"):
        simulate(digits(system="gossip:GOSSIP"), tmp_path / "run", interrupted=After(10))
    whole = simulate(digits(system="gossip:GOSSIP", duration="1 s"), tmp_path / "other", checkpoint_every=None)
    assert whole.manifest["status"] == "completed"


@pytest.mark.parametrize(
    ("system", "path", "words"),
    [
        ("nowhere:SYSTEM", "system.name", "nowhere"),
        ("gossip:Gossip", "system.name", "no Composition"),
        ({"name": "baseline", "exchange": "gossip:Nothing"}, "system.exchange", "Nothing"),
        ({"name": "baseline", "batching": "gossip:Gossip"}, "system.batching", "no subclass of Batching"),
        ({"name": "baseline", "exchange": "gossip:Gossip"}, "system.synchronization", "waits for messages"),
        (
            {"name": "baseline", "exchange": {"kind": "gossip:Gossip", "fanout": 0}, "synchronization": "asynchronous"},
            "system.exchange.fanout",
            "1 or more",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(gossip, system, path, words):
    with pytest.raises(InputError, match=words) as fault:
        compose(spec(system))
    assert fault.value.path == path


def test_two_choices_that_receive_the_same_messages_are_refused(tmp_path, monkeypatch):
    code = """
from dlion_sim.protocol.choices import KnowledgeTransfer
from dlion_sim.protocol.exchange.significance import Announcement

class Eavesdropping(KnowledgeTransfer):
    receives = (Announcement,)

    def stepped(self, iterations, loss):
        return []

    def merge(self):
        return 0
"""
    (tmp_path / "eavesdropping.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    both = {"name": "gaia", "knowledge_transfer": "eavesdropping:Eavesdropping"}
    with pytest.raises(InputError, match="receives Announcement messages, which are exchange's") as refused:
        compose(spec(both))
    sys.modules.pop("eavesdropping", None)
    assert refused.value.path == "system.knowledge_transfer"


def test_the_message_of_the_page_is_simulated_recorded_and_saved(halves, tmp_path):
    whole = simulate(digits(system=written("halves")), tmp_path / "whole")
    assert whole.summary["accuracy"]["mean"] > 0.5
    assert set(whole.transfers()["kind"]) == {"half"}
    cut = simulate(digits(system=written("halves")), tmp_path / "cut", interrupted=After(100))
    check_same(resume(cut.folder), whole)


def test_the_message_of_the_page_is_sent_between_live_nodes(halves, tmp_path):
    outcomes = Together(brief("iterations=6", system=written("halves")), tmp_path / "parts").run()
    assert [outcome.ending.stopped_by for outcome in outcomes] == ["iterations"] * 3
    run = gather(tmp_path / "parts", tmp_path / "run")
    assert set(run.transfers()["kind"]) == {"half"}
    assert run.iterations()["applied"].sum() > 0


@pytest.mark.parametrize("entries", [3, None], ids=["of another length", "longer than the model"])
def test_live_nodes_drop_a_sender_of_malformed_messages(halves, tmp_path, entries):
    together = Together(brief("duration=0.7 s", system=written("halves")), tmp_path)

    async def spoil(together):
        half = BODIES["half"]
        values = torch.zeros(entries or together.setting.layout.size + 1)
        together.drivers[2]._links.send(0, Message(2, half(False), (values,)))

    first = together.run(spoil)[0]
    assert "sent no message of this run" in first.lost[2]


def test_fields_of_other_types_or_ranges_are_refused(halves):
    compose(spec(written("halves")))
    half = BODIES["half"]
    data = Message(1, half(True), (torch.zeros(3),)).encode()
    assert decode(data, workers=3, parameters=6).body == half(True)
    for wrong in (data.replace(b"\xc3", b"\x07"), data.replace(b"half", b"hall")):
        with pytest.raises(MalformedMessageError):
            decode(wrong, workers=3, parameters=6)


def test_two_kinds_of_message_of_one_name_are_refused(halves, tmp_path):
    compose(spec(written("halves")))
    (tmp_path / "others.py").write_text((tmp_path / "halves.py").read_text())
    with pytest.raises(OwnCodeError, match=r"messages of halves\.Half are called 'half' already"):
        compose(spec({**written("halves"), "exchange": "others:Halves"}))
    sys.modules.pop("others", None)


GIVING_UP = """
from dlion_sim.protocol.events import Abort
from dlion_sim.protocol.baseline import NoTransfer

class GivesUp(NoTransfer):
    def stepped(self, iterations, loss):
        return [Abort("it has had enough")] if iterations == 3 else []
"""


def test_an_abort_of_a_choice_is_a_failed_run_with_its_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "weary.py").write_text(GIVING_UP)
    (tmp_path / "weary.yml").write_text(
        dump(digits(system={"name": "baseline", "knowledge_transfer": "weary:GivesUp"}))
    )
    assert dlion(monkeypatch, "run", "weary.yml", "-o", "run") == 1
    assert "dlion: the run failed: it has had enough" in capsys.readouterr().err
    run = Run.open(tmp_path / "run")
    assert (run.summary["status"], run.summary["stopped_by"]) == ("failed", "it has had enough")
    sys.modules.pop("weary", None)
