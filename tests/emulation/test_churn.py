"""Nodes and links of emulated networks that go and come back."""

from functools import partial
from pathlib import Path

import pytest

from dlion_sim.results import Run
from dlion_sim.scenario import dump
from tests import command
from tests.simulation.scenarios import digits

pytestmark = pytest.mark.emulation

NIC = {"compute": "8 cores", "nic": "20 Mbps"}
CLUSTER = {
    "clouds": [{"name": "a", "workers": [{"count": 2, **NIC}]}, {"name": "b", "workers": [NIC]}],
    "wan": {"bandwidth": "10 Mbps", "rtt": "10 ms"},
}


def emulated(monkeypatch, folder, system, **availability) -> Run:
    """A run of two workers in one cloud and one in another."""
    monkeypatch.chdir(folder)
    written = digits(
        "workload.evaluate_every=0.5 s", cluster=CLUSTER, duration="14 s", system=system, availability=availability
    )
    Path("small.yaml").write_text(dump(written))
    assert partial(command.dlion, monkeypatch)("emulate", "small.yaml", "--quiet", "--output", "run") == 0
    run = Run.open(Path("run"))
    assert (run.summary["status"], run.summary["stopped_by"]) == ("completed", "duration")
    return run


def times(run, what, **of):
    told = run.membership()
    for name, value in {"what": what, **of}.items():
        told = told[told[name] == value]
    return told["virtual_time"].tolist()


def test_a_node_is_killed_and_returns(monkeypatch, tmp_path):
    run = emulated(monkeypatch, tmp_path, "baseline", workers={"b/0": {"down": [["3 s", "6 s"]]}})
    assert times(run, "down") == pytest.approx([3], abs=0.5)
    assert times(run, "lost") == pytest.approx([3, 3], abs=1)
    assert times(run, "up") == pytest.approx([6], abs=1)
    assert times(run, "joined") == pytest.approx([6], abs=3)
    assert run.manifest["churn"]["crash"] == "SIGKILL"
    (joined,) = times(run, "joined")
    links = run.links()
    links = links[links["virtual_time"] > joined + 1]
    assert set(zip(links["sender"], links["receiver"], strict=True)) == {
        (one, other) for one in range(3) for other in range(3) if one != other
    }


def test_after_a_long_outage_of_a_link_its_ends_reconnect(monkeypatch, tmp_path):
    """Those in one cloud go on together meanwhile, and the others alone."""
    run = emulated(monkeypatch, tmp_path, "ako", links={"a-b": {"down": [["3 s", "8 s"]]}}, silence="2 s")
    assert times(run, "lost") == pytest.approx([5] * 4, abs=1)
    assert times(run, "found") == pytest.approx([8] * 4, abs=0.6)
    assert not times(run, "joined")
    assert run.manifest["emulation"]["outages"]["longer"] == "blackhole routes"
    links = run.links()
    apart = links[links["virtual_time"].between(6.6, 8)]  # later than what the loss has cut is told
    assert set(zip(apart["sender"], apart["receiver"], strict=True)) == {(0, 1), (1, 0)}


def test_a_short_outage_of_a_link_loses_nobody(monkeypatch, tmp_path):
    run = emulated(monkeypatch, tmp_path, "baseline", links={"a-b": {"down": [["3 s", "5 s"]]}}, silence="20 s")
    assert run.membership().empty
    iterations = run.iterations()
    assert len(iterations[iterations["virtual_time"] > 7])
