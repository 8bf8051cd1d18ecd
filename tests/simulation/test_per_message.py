"""The time that participants take for messages: one after another, and none for those of their own machine."""

from functools import partial

import pytest

from dlion_sim.assembly.outages import Outage
from dlion_sim.protocol.membership_messages import NotBefore
from dlion_sim.protocol.messages import Message
from dlion_sim.simulation import resume, simulate
from dlion_sim.simulation.messaging import Messaging
from tests.simulation.churning import WAYS, churning, run
from tests.simulation.scenarios import digits
from tests.simulation.test_churn_detection import ROUTING, World

TIME = "workload.compute_time.per_message=7 ms"


def alike(count):
    return {"clouds": [{"name": "a", "workers": [{"count": count, "compute": "8 cores", "nic": "50 Mbps"}]}]}


def ends(run):
    return run.iterations().groupby("iteration")["virtual_time"].max()


@pytest.mark.parametrize("model", ["flows", "packets"])
@pytest.mark.parametrize("count", [2, 4])
def test_an_iteration_is_longer_by_all_messages_that_come_at_once(tmp_path, count, model):
    def run(name, *overrides):
        scenario = digits(
            f"network.model={model}", *overrides, cluster=alike(count), system="baseline", duration=None, iterations=5
        )
        return ends(simulate(scenario, tmp_path / name))

    without, with_time = run("without"), run("with", TIME)
    apart = (with_time - without).diff().dropna()
    # By packets some may come before others, so that only the rest waits.
    least = 0.007 if model == "packets" else 0.007 * (count - 1)
    assert apart.between(least - 1e-6, 0.007 * (count - 1) + 1e-3).all(), apart


def test_messages_of_the_same_machine_take_none(tmp_path):
    def run(name, *overrides):
        scenario = digits(*overrides, cluster=alike(1), system="parameter_server", duration=None, iterations=5)
        return ends(simulate(scenario, tmp_path / name))

    assert run("without").tolist() == run("with", TIME).tolist()


def test_a_run_that_was_interrupted_goes_on_to_the_bit(tmp_path):
    scenario = digits(TIME, system="dlion", duration="2 s")
    whole = simulate(scenario, tmp_path / "whole")
    simulate(scenario, tmp_path / "parts", until=0.9)
    parts = resume(tmp_path / "parts")
    columns = ["virtual_time", "worker", "kind", "loss"]
    assert parts.metrics()[columns].equals(whole.metrics()[columns])


BACK = partial(World, {2: [Outage(10, 10.1)]})
"""A participant that fails and is back, and found 100 ms later."""
HANDLED = {
    "two running processes": (World, [(9, 0, 2), (9, 0, 2)], [(10, 0), (11, 1)]),
    "a sender that fails, until that is detected": (
        partial(World, {2: [Outage(10, 20)]}),
        [(9.04, 2, 0), (9.04, 2, 0)],
        [(10.04, 0)],
    ),
    "a sender that is back": (BACK, [(9.9, 2, 0), (9.9, 2, 0), (10.5, 2, 0)], [(12.9, 2)]),
    "a receiver that is back": (BACK, [(9.9, 0, 2), (9.9, 0, 2), (10.5, 0, 2)], [(11.5, 2)]),
    "a receiver that was down": (BACK, [(10.05, 0, 2), (10.05, 0, 2), (10.5, 0, 2)], [(11.5, 2)]),
    "a path that is back": (
        partial(World, paths={("a", "b"): [Outage(10, 10.7)]}, silence=0.5),
        [(9.9, 0, 2), (9.9, 0, 2), (11, 0, 2)],
        [(12.9, 2)],
    ),
}
"""Outages; arrivals, as time, sender and receiver; and which of them is handled when, if each takes a second."""


@pytest.mark.parametrize("case", HANDLED)
def test_a_message_is_handled_if_its_connection_still_exists(case):
    make, arrivals, expected = HANDLED[case]
    world, handled = make(), []

    def handle(_, event):
        handled.append((world.event_queue.now, event.message.body.iteration))

    messaging = Messaging(
        world.event_queue, ROUTING, lambda *_: None, None, per_message=1.0, handle=handle, changed=lambda: None
    )
    messaging.churn = world.churn
    for number, (time, sender, receiver) in enumerate(arrivals):
        world.event_queue.after(time, partial(messaging.delivered, receiver, Message(sender, NotBefore(number))))
    world.ended = messaging.process_ended
    world.run()
    assert handled == [(pytest.approx(time), number) for time, number in expected]
    counts = messaging.counts
    assert (counts["delivered"], counts["cut"]) == (len(expected), len(arrivals) - len(expected))


@pytest.mark.parametrize("way", ["rejoin", "link"])
def test_messages_of_runs_with_churn_are_counted(tmp_path, monkeypatch, way):
    ended = run(churning("dlion", WAYS[way], TIME), tmp_path / "run", monkeypatch)
    assert ended.summary["availability"]["messages"]["cut"]
