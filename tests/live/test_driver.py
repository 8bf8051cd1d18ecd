"""The wall-clock driver against the virtual one, and what becomes of a run that loses a node."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.live.connection import Connection
from dlion_sim.live.driver import Driver
from dlion_sim.live.gathering import gather
from dlion_sim.live.link_timing import Meter
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.node_config import NodeConfig
from dlion_sim.protocol.events import PeerLost
from dlion_sim.protocol.exchange.pairwise import Swap
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.simulation import simulate
from tests.live.together import QUICK, Together
from tests.simulation.scenarios import digits, streamed

CLOUD = {"clouds": [{"name": "a", "workers": [{"count": 3, "compute": "400 cores"}]}]}


def brief(*overrides, **keys):
    """Three workers whose iterations take about 12 ms."""
    return digits("workload.evaluate_every=0.2 s", *overrides, **{"cluster": CLOUD, "duration": None, **keys})


def losses(run):
    return run.iterations().pivot(index="iteration", columns="worker", values="loss")


@pytest.mark.parametrize(
    "system",
    [
        "baseline",
        "gaia",
        "dpsgd",
        "ring_allreduce",
        "power_sgd",
        "demo",
        {"name": "local_sgd", "exchange": {"period": 3}},
        {"name": "diloco", "exchange": {"period": 3}},
        {"name": "diloco", "exchange": {"period": 3, "precision": "bf16"}},
        {"name": "local_sgd", "exchange": {"period": 3, "route": "ring", "precision": "fp16"}},
        "parameter_server",
        {"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [0, {"cloud": "a"}]}},
        {"name": "baseline", "topology": {"kind": "edges", "edges": [[0, 1], [1, 2]]}},
    ],
    ids=str,
)
def test_in_step_a_live_run_learns_what_a_simulated_one_does_to_the_bit(tmp_path, system):
    scenario = brief("iterations=8", system=system)
    simulated = simulate(scenario, tmp_path / "simulated", device="cpu")
    for outcome in Together(scenario, tmp_path / "parts").run():
        assert (outcome.ending.status, outcome.ending.stopped_by) == ("completed", "iterations")
    live = gather(tmp_path / "parts", tmp_path / "live")
    assert losses(live).equals(losses(simulated))
    assert live.links()["bytes"].sum() == simulated.links()["bytes"].sum()


def test_samples_that_arrive_at_a_live_worker_are_tested_and_then_trained_on(tmp_path):
    """All times are those of the wall, so which samples came by an iteration is the run's own."""
    scenario = streamed("workload.evaluate_every=0.2 s", system="baseline", duration="1 s", arrivals="100/s")
    together = Together(scenario, tmp_path / "parts")
    together.run()
    run = gather(tmp_path / "parts", tmp_path / "live")
    for worker, own in run.arrivals().groupby("worker"):
        arrivals = together.setting.stream.arrivals[worker]
        come = own["batch_size"].cumsum() + arrivals.initial
        assert [arrivals.by(now) for now in own["virtual_time"]] == come.tolist()
        begun = run.iterations().query("worker == @worker")
        begun = begun["virtual_time"] - begun["wait_seconds"] - begun["compute_seconds"]
        assert len(own) >= len(begun) - 1
    assert run.summary["stream"]["scored"] == run.arrivals()["batch_size"].sum() > 50


def test_a_live_run_records_transfers_waits_and_profiling_as_a_simulated_one_does(tmp_path):
    system = {"name": "dlion", "batching": {"profile_repeats": 1}, "synchronization": "synchronous"}
    Together(brief("duration=0.7 s", system=system), tmp_path / "parts").run()
    run = gather(tmp_path / "parts", tmp_path / "live")
    links, transfers, metrics = run.links(), run.transfers(), run.metrics()
    assert links["bytes"].sum() == transfers["bytes"].sum() == run.summary["bytes_sent"]
    assert transfers["end"].notna().sum() == links["messages"].sum()
    whole = transfers.dropna(subset=["end"])
    assert (whole["end"] >= whole["begin"]).all()
    assert {"contribution", "profile"} <= set(whole["kind"])
    assert set(metrics[metrics["kind"] == "profile"]["worker"]) == {0, 1, 2}
    assert set(metrics[metrics["kind"] == "unfinished"]["worker"]) == {0, 1, 2}
    waits = run.iterations().query("wait_seconds > 0")
    assert waits["waited_for"].notna().all()
    assert set(waits["waited_for_name"]) <= {"a/0", "a/1", "a/2"}


@pytest.mark.parametrize("system", ["ako", "hop", "adpsgd", "dlion"], ids=str)
def test_the_other_systems_run_too(tmp_path, system):
    together = Together(brief("iterations=12", system=system), tmp_path)
    assert all(outcome.ending.stopped_by == "iterations" for outcome in together.run())
    initial = together.setting.worker(0).replica.parameters
    for rank, member in enumerate(together.members):
        assert member.participant.iteration == 12, rank
        assert not torch.equal(member.participant.replica.parameters, initial)


def test_a_duration_ends_all_nodes_at_that_time_and_none_is_a_loss(tmp_path):
    together = Together(brief("duration=0.7 s", system="baseline"), tmp_path)
    for outcome in together.run():
        assert (outcome.ending.stopped_by, outcome.ending.seconds, outcome.lost) == ("duration", 0.7, {})
        first, *others, last = (round(snapshot.time, 6) for snapshot in outcome.snapshots)
        assert (first, last) == (0, 0.7)
        assert set(others) <= {0.2, 0.4, 0.6}


def test_peers_take_turns_in_being_sent_to_first(tmp_path, monkeypatch):
    order, send = [], Mesh.send

    def note(links, peer, message):
        if message.body.channel is Channel.DATA and message.sender == 0:
            order.append(peer)
        send(links, peer, message)

    monkeypatch.setattr(Mesh, "send", note)
    Together(brief("iterations=8", system="baseline"), tmp_path).run()
    assert set(zip(order[::2], order[1::2], strict=True)) == {(1, 2), (2, 1)}
    assert 3 <= order[::2].count(1) <= 5


def test_no_event_is_handled_after_the_duration(monkeypatch):
    heard = []

    async def scenario():
        member = SimpleNamespace(
            participant=SimpleNamespace(handle=lambda event, now: heard.append(now) or []), machine=None
        )
        setting = Setting.of(brief("duration=1 s", system="baseline"))
        driver = Driver(setting, NodeConfig(0, (), b"", Path()), member, None, None)
        for now in (0.9, 1.1):
            monkeypatch.setattr(Driver, "now", now)
            driver._participation.tell(PeerLost(1))

    asyncio.run(scenario())
    assert heard == [0.9]


HASTY = {"name": "baseline", "synchronization": {"kind": "asynchronous", "send_buffer": 1}}


@pytest.mark.parametrize("system", ["ako", HASTY], ids=["ako", "asynchronous"])
def test_a_worker_waits_for_slow_links_but_not_for_acknowledgements(tmp_path, monkeypatch, system):
    """No message leaves before the gate is open, and none is ever acknowledged."""
    all_left, gate = Connection.all_left, asyncio.Event()

    async def slow(connection, *, timeout):
        await gate.wait()
        await all_left(connection, timeout=timeout)

    async def never(meter, delivery, *, timeout):
        await asyncio.Event().wait()

    monkeypatch.setattr(Connection, "all_left", slow)
    monkeypatch.setattr(Meter, "seconds", never)

    async def meanwhile(together):
        await together.until(lambda: all(each.participant.iteration >= 1 for each in together.members))
        await asyncio.sleep(0.3)
        assert all(each.participant.iteration <= 3 for each in together.members)
        gate.set()

    outcomes = Together(brief("iterations=20", system=system), tmp_path / "parts").run(meanwhile)
    assert {outcome.ending.stopped_by for outcome in outcomes} == {"iterations"}
    iterations = gather(tmp_path / "parts", tmp_path / "run").iterations()
    assert iterations["wait_seconds"].min() >= 0
    assert iterations.groupby("worker")["wait_seconds"].max().min() > 0
    busy = iterations.groupby("worker")[["compute_seconds", "wait_seconds"]].sum().sum(axis=1)
    assert all(busy[rank] <= outcome.ending.seconds for rank, outcome in enumerate(outcomes))


def kill(rank, after=0):
    """End a node as a crash does, after so many iterations: its connections close without a word."""

    async def interfere(together):
        await together.until(lambda: together.members[rank].participant.iteration >= after)
        together.kill(rank)

    return interfere


def without(rank, after=0):
    """Have the others go on for a while without a node that is killed, and note since when."""

    async def interfere(together):
        others = [each for each in range(3) if each != rank]

        async def go_on(iterations):
            since = [together.members[each].participant.iteration for each in others]
            await together.until(
                lambda: all(
                    together.members[each].participant.iteration >= before + iterations
                    for each, before in zip(others, since, strict=True)
                )
            )

        await kill(rank, after)(together)
        await go_on(15)  # by then all have heard of it
        together.since = max(together.drivers[each].now for each in others)
        await go_on(40)
        await together.until(lambda: all(together.drivers[each].now > together.since + 0.7 for each in others))
        for each in others:
            together.drivers[each].interrupt()

    return interfere


ASYNCHRONOUS = {"name": "baseline", "synchronization": "asynchronous"}
HOP = {"name": "hop", "synchronization": {"backup_workers": 1, "max_gap": 3}}


@pytest.mark.parametrize("system", [ASYNCHRONOUS, HOP, "adpsgd"], ids=str)
def test_asynchronous_workers_continue_without_a_lost_peer(tmp_path, system):
    together = Together(brief("duration=600 s", system=system), tmp_path)
    for outcome in together.run(without(2))[:2]:
        assert outcome.ending.stopped_by == "interrupt"
        assert list(outcome.lost) == [2]
    check_that_two_are_left(gather(tmp_path, tmp_path / "run"), together.since)


def check_that_two_are_left(run, since):
    """Whether nodes 0 and 1 exchange with each other, both ways and nobody else, and apply what they get."""
    # Rows are of the 0.2 s before them. What was cut off with a connection is in those of the end, as no whole message.
    links = run.links().query("virtual_time > @since + 0.2 and messages > 0")
    assert set(zip(links["sender"], links["receiver"], strict=True)) == {(0, 1), (1, 0)}
    iterations = run.iterations().query("virtual_time > @since")
    assert set(iterations["worker"]) == {0, 1}
    if links["gradients"].any():
        assert iterations.groupby("worker")["applied"].sum().min() > 0


def test_remaining_workers_share_the_whole_batch_and_transfer_knowledge(tmp_path):
    """Nobody gets better, so that now the one and now the other has had the lower loss."""
    system = {
        "name": "dlion",
        "batching": {"profile_repeats": 1, "growth": "none"},
        "synchronization": "asynchronous",
        "knowledge_transfer": {"period": 5, "loss_window": 1},
    }
    rate = "workload.optimizer.learning_rate=1e-6"
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 3, "compute": "20 cores"}]}]}
    together = Together(brief("duration=600 s", rate, system=system, cluster=cluster), tmp_path)
    together.run(without(2, after=12))
    run = gather(tmp_path, tmp_path / "run")
    check_that_two_are_left(run, together.since)
    late = run.iterations()
    late = late[late["virtual_time"] > together.since]
    assert late["global_batch_size"].max() == 3 * 16
    assert late.groupby("worker")["batch_size"].median().min() > 16
    assert late["merged"].sum() > 0


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        ("baseline", "synchronous training waits for every peer; lost: "),
        ("ring_allreduce", "the ring is broken, whatever on_loss says; system: baseline"),
        ("dlion", "more peers are lost (1) than there are backup workers (0); lost: "),
    ],
)
def test_a_synchronous_run_fails_with_a_reason_if_a_peer_is_lost(tmp_path, system, reason):
    together = Together(brief("duration=600 s", system=system), tmp_path)
    for outcome in together.run(kill(2))[:2]:
        assert outcome.ending.status == "failed"
        assert outcome.ending.stopped_by.startswith(reason)
        assert "node 2 (" in outcome.ending.stopped_by
        assert outcome.ending.seconds < 60


def test_all_learn_of_a_loss_even_through_others(tmp_path):
    """Workers know each other only through the server, who would wait for ever for the gradient that is missing."""
    together = Together(brief("duration=600 s", system="parameter_server"), tmp_path)
    outcomes = together.run(kill(2))
    assert [outcome.ending.status for outcome in (*outcomes[:2], outcomes[3])] == ["failed"] * 3
    assert outcomes[3].ending.stopped_by.startswith("the server waits for every worker's gradients; lost: node 2 (it ")
    for outcome in outcomes[:2]:
        assert "node 2 (so others say)" in outcome.ending.stopped_by
        assert outcome.ending.seconds < 60


def test_a_peer_that_sends_unrequested_answers_is_dropped_and_the_others_continue(tmp_path):
    """Node 2 sends answers that nobody has asked it for, as no honest worker does."""
    together = Together(brief("duration=2 s", system="adpsgd"), tmp_path)

    async def talk_nonsense(together):
        liar = together.drivers[2]
        parameters = together.members[2].participant.replica.snapshot()
        for _ in range(2):
            liar._links.send(1, Message(2, Swap(answer=True), (parameters,)))

    honest = together.run(talk_nonsense)[:2]
    assert [outcome.ending.stopped_by for outcome in honest] == ["duration", "duration"]
    assert honest[1].lost[2] == "it sent no message of this run: an answer that was not requested"


def test_an_interrupt_ends_a_node_early(tmp_path):
    async def interrupt(together):
        for driver in together.drivers.values():
            driver.interrupt()

    for outcome in Together(brief("duration=600 s", system="baseline"), tmp_path).run(interrupt):
        assert (outcome.ending.status, outcome.ending.stopped_by) == ("interrupted", "interrupt")


def test_a_node_that_cannot_go_on_fails_with_its_part(tmp_path, monkeypatch):
    connect = Mesh.connect

    def only_once(mesh, peer, connections):
        if peer in mesh._sessions:
            raise InputError("it has another kind of address")
        connect(mesh, peer, connections)

    async def returns(together):
        together.kill(2)
        await together.start_again(2)
        await asyncio.wait(together.tasks[:2])
        together.kill(2)

    monkeypatch.setattr(Mesh, "connect", only_once)
    outcomes = Together(brief("duration=600 s", system="baseline", availability={}), tmp_path).run(returns)
    for outcome in outcomes[:2]:
        assert (outcome.ending.status, outcome.ending.stopped_by) == ("failed", "it has another kind of address")
        assert outcome.ending.seconds > 0


def test_a_node_that_cannot_start_names_the_missing_peer(tmp_path):
    together = Together(brief(system="baseline", iterations=1), tmp_path, timeouts=replace(QUICK, start=0.5))
    together.absent = {1}
    outcomes = together.run()
    for outcome in (outcomes[0], outcomes[2]):
        assert isinstance(outcome, InputError)
        assert "could not start within 0.5 s: node 1 at 127.0.0.1:" in str(outcome)
