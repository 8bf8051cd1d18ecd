"""The page on writing one's own system works as it stands; what cannot be used is refused with the reason."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.scenario import SystemSpec

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text()


@pytest.fixture
def gossip(tmp_path, monkeypatch):
    """The page's file, in the current folder."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "gossip.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield
    sys.modules.pop("gossip", None)


def spec(system) -> SystemSpec:
    return SystemSpec.model_validate(system)


def test_the_pages_choice_runs(gossip, tmp_path):
    from dlion_sim.simulation import simulate
    from tests.simulation.scenarios import digits

    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    run = simulate(digits(system=yaml.safe_load(text)["system"]), tmp_path / "run")
    assert run.summary["accuracy"]["mean"] > 0.5
    assert run.scenario["system"]["exchange"] == {"kind": "gossip:Gossip", "fanout": 2}
    # Of three workers, each tells its two peers; of one peer an iteration, half as much.
    half = simulate(digits("system.exchange.fanout=1", system=yaml.safe_load(text)["system"]), tmp_path / "half")
    per_iteration = [each.summary["bytes_sent"] / sum(each.summary["iterations"]["per_worker"]) for each in (run, half)]
    assert per_iteration[1] == pytest.approx(per_iteration[0] / 2, rel=0.05)


def test_the_pages_system_is_one(gossip):
    system = compose(spec("gossip:GOSSIP"))
    assert system.spec.exchange.parameters == {"fanout": 2}


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
