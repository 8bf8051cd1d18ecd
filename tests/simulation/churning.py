"""Small runs with churn, and their invariants."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from dlion_sim.results import Run
from dlion_sim.scenario import Scenario
from dlion_sim.simulation import simulate
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.engine import Engine
from tests.simulation.scenarios import digits

CLUSTER = {
    "clouds": [
        {"name": "east", "workers": [{"count": 2, "compute": "24 cores", "nic": "50 Mbps"}]},
        {"name": "west", "workers": [{"count": 2, "compute": "12 cores", "nic": "20 Mbps"}]},
    ],
    "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"},
}
WAYS: dict[str, dict[str, Any]] = {
    "crash": {"workers": {"west/1": {"down": [["0.5 s", None]]}}},
    "notice": {"workers": {"west/1": {"down": [["0.8 s", "1.1 s"]], "kind": "preemption", "notice": "0.5 s"}}},
    "rejoin": {"workers": {"west/1": {"down": [["0.5 s", "0.8 s"]]}}},
    "new worker": {"workers": {"west/1": {"down": [["0 s", "0.6 s"]]}}},
    "link": {"links": {"east-west": {"down": [["0.5 s", "1.1 s"]]}}, "silence": "0.3 s"},
    "cloud": {"clouds": {"west": {"down": [["0.5 s", "0.9 s"]]}}},
}
"""Kinds of churn."""


def churning(system: Any, availability: dict[str, Any], *overrides: str, **keys: Any) -> Scenario:
    """Four workers in two clouds, some 20 iterations."""
    keys = {"cluster": CLUSTER, "duration": "2 s", "workload.evaluate_every": "0.5 s", **keys}
    return digits(
        f"workload.evaluate_every={keys.pop('workload.evaluate_every')}",
        *overrides,
        system=system,
        availability=availability,
        **keys,
    )


class Kept(Engine):
    """An engine that can be examined after its run."""

    engines: ClassVar[list[Engine]] = []

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.engines.append(self)


def run(scenario: Scenario, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A simulation, whose invariants are checked."""
    monkeypatch.setattr(sys.modules[simulate.__module__], "Engine", Kept)
    ended = simulate(scenario, folder, checkpoint_every=None)
    check(ended, Kept.engines.pop())
    return ended


def check(run: Run, engine: Engine) -> None:
    """It has ended with a reason; lost messages are counted, and no worker has diverged."""
    summary, membership = run.summary, run.membership()
    assert summary is not None
    assert summary["stopped_by"]
    assert run.manifest["status"] in ("completed", "failed")
    assert engine._messaging.counts["under_way"] == under_way(engine)
    assert summary["bytes_sent"] == run.links()["bytes"].sum() == run.transfers()["bytes"].sum()
    transfers = run.transfers()
    assert len(transfers.dropna(subset=["end"])) == run.links()["messages"].sum()
    assert (transfers["bytes"] >= 0).all()
    for node in engine._nodes:
        assert torch.isfinite(node.worker.replica.parameters).all()
        assert all(node.worker.setup.links.messages(peer) >= 0 for peer in node.worker.setup.peers)
    assert membership["virtual_time"].is_monotonic_increasing
    if len(membership):
        up = summary["availability"]["up"]
        assert all(0 <= share <= 1 for share in up)
        assert summary["availability"]["useful"] <= summary["availability"]["computed"]


def under_way(engine: Engine) -> int:
    """The number of messages that are queued, on links, in transit after these, or waiting for their receiver."""
    transport = engine._transport
    assert isinstance(transport, Transport)
    queued = sum(len(queue) for queues in (transport._waiting, transport._delayed) for queue in queues.values())
    further = engine._messaging.delivered, engine._messaging._hand_over
    later = sum(getattr(call, "func", None) in further for call in planned(engine))
    return len(transport._heads) + queued + later


def planned(engine: Engine) -> Iterator[object]:
    """All scheduled calls."""
    event_queue = engine._event_queue
    for calls in (*event_queue._planned.values(), event_queue._due, event_queue._late):
        yield from calls


def times(run: Run, what: str, participant: int) -> list[float]:
    """The times of such rows of a participant."""
    rows = run.membership()
    chosen = rows[(rows["what"] == what) & (rows["participant"] == participant)]
    found: list[float] = chosen["virtual_time"].tolist()
    return found
