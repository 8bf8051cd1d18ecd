"""Whole runs with churn: times and bytes by hand, and invariants of every system."""

from __future__ import annotations

import random
from itertools import cycle, islice

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.protocol.exchange.power_sgd import BROKEN as POWER_SGD
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.simulation import resume, simulate
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.tcp import TCP
from tests.simulation.checkpointing.test_checkpoint import After, check_same
from tests.simulation.churning import WAYS, churning, run, times

TWO = {
    "clouds": [
        {"name": "a", "workers": [{"count": 2, "compute": "1 cores", "nic": "80 Mbps"}], "lan": {"rtt": "100 ms"}}
    ]
}
COMPUTED = 0.5 + 16e-6
"""Seconds of a gradient."""
RATE = 80e6 / 8 / TCP.data
"""Bytes of messages on a link in a second."""
SECOND = {"workers": {"a/1": {"down": [["1.2 s", "2 s"]]}}}


def two(availability, *overrides):
    """Two workers in step, who send each other their gradients over 80 Mbps and half a round trip of 50 ms."""
    compute = "workload.compute_time={alpha: 500 ms, beta: 1 us}"
    return churning("baseline", availability, compute, *overrides, cluster=TWO, duration="4 s")


def test_a_failure_is_detected_after_the_latency_and_a_worker_joins_when_it_has_the_state(tmp_path, monkeypatch):
    ended = run(two(SECOND), tmp_path / "run", monkeypatch)
    assert times(ended, "lost", 1) == [pytest.approx(1.25)]
    assert times(ended, "found", 1) == [pytest.approx(2.1)]
    joined = ended.membership().query("what == 'joined'").iloc[0]
    # Hello, request and state pass the link, which is 50 ms long, one after the other.
    assert joined["virtual_time"] == pytest.approx(2.25 + joined["bytes"] / RATE, abs=1e-4)
    assert joined["seconds"] == pytest.approx(joined["virtual_time"] - 2.0)
    assert (joined["peer"], joined["incarnation"]) == (0, 1)
    states = ended.transfers().query("kind == 'state'")
    assert joined["bytes"] == states["bytes"].sum() > ended.manifest["parameters"] * 4
    # Its peer had sent and received a second gradient by then, and went on alone with the third and the fourth.
    own = ended.iterations().query("worker == 0")
    assert own["applied"].tolist()[:5] == [1, 1, 0, 0, 1]
    assert joined["iteration"] == 4
    assert ended.iterations().query("worker == 1")["iteration"].tolist()[:3] == [1, 2, 5]


def test_a_peer_waits_until_the_lost_worker_is_back(tmp_path, monkeypatch):
    """Then it continues alone until the worker has its state, from the next iteration on."""
    ended = run(two({**SECOND, "on_loss": "wait"}), tmp_path / "run", monkeypatch)
    own = ended.iterations().query("worker == 0")
    assert not own["virtual_time"].between(1.2, 2.1, inclusive="left").any()
    assert own["applied"].tolist() == [1, 1, 0, *[1] * (len(own) - 3)]
    assert ended.membership().query("what == 'joined'")["iteration"].tolist() == [3]


@pytest.mark.parametrize("kind", ["crash", "preemption"])
def test_an_unfinished_gradient_is_lost_work_after_a_crash_and_without_notice(tmp_path, monkeypatch, kind):
    """The end is 400 ms into the second gradient, of 500 ms."""
    notice = {"notice": "0 s"} if kind == "preemption" else {}
    gone = {"workers": {"a/1": {"down": [["0.9 s", None]], "kind": kind, **notice}}}
    ended = run(two(gone, "system=ako"), tmp_path / "run", monkeypatch)
    (cut,) = ended.metrics().query("kind == 'cut'").to_dict("records")
    assert (cut["worker"], cut["iteration"], cut["batch_size"]) == (1, 2, 16)
    counts = ended.summary["availability"]
    assert cut["compute_seconds"] == counts["lost_seconds"] == pytest.approx(0.9 - COMPUTED)
    assert counts["computed"] - counts["useful"] == 16


def test_a_worker_lost_while_it_catches_up_loses_no_gradient(tmp_path, monkeypatch):
    """It has reported its first iteration at 0.17 s, skips three, and waits for its peers' parameters."""
    fast = {"count": 2, "compute": "24 cores", "nic": "50 Mbps"}
    cluster = {"clouds": [{"name": "a", "workers": [fast, {"compute": "4 cores", "nic": "10 Mbps"}]}]}
    system = {
        "name": "hop",
        "exchange": "parameters",
        "synchronization": {"max_gap": 6, "skip_from": 2, "staleness": 0},
    }
    gone = {"workers": {"a/2": {"down": [["0.2 s", None]]}}}
    ended = run(churning(system, gone, cluster=cluster, duration="0.5 s"), tmp_path / "run", monkeypatch)
    (cut,) = ended.metrics().query("kind == 'cut'").to_dict("records")
    assert (cut["worker"], cut["compute_seconds"]) == (2, 0)
    assert cut["wait_seconds"] == pytest.approx(0.03)
    counts = ended.summary["availability"]
    assert counts["computed"] == counts["useful"] == ended.iterations()["batch_size"].sum()


def test_an_abort_is_a_failure_with_its_reason(tmp_path, monkeypatch):
    ended = run(two({**SECOND, "on_loss": "abort"}), tmp_path / "run", monkeypatch)
    assert ended.manifest["status"] == "failed"
    assert "waits for every peer" in ended.summary["stopped_by"]
    assert ended.summary["virtual_seconds"] == pytest.approx(1.25)


def test_links_have_carried_a_part_of_messages_that_are_cut(tmp_path, monkeypatch):
    """A crash 2 ms after both began to send; neither message is ever delivered."""
    crash = COMPUTED + 0.002
    ended = run(two({"workers": {"a/1": {"down": [[f"{crash} s", None]]}}}), tmp_path / "run", monkeypatch)
    cut = ended.transfers()
    assert cut["end"].isna().tolist()[:2] == [True, True]
    assert cut["bytes"].tolist()[:2] == [pytest.approx(0.002 * RATE / (1 + TCP.acknowledgements), rel=1e-3)] * 2
    messages = ended.summary["availability"]["messages"]
    assert messages == {"sent": 2, "delivered": 0, "cut": 2, "refused": 0, "under_way": 0}
    assert ended.summary["bytes_sent"] == cut["bytes"].sum()


def test_sent_messages_are_delivered_unless_their_receiver_has_failed(tmp_path, monkeypatch):
    """A crash 20 ms after both began: the messages have been sent. The computed gradient is lost with its worker."""
    crash = COMPUTED + 0.02
    ended = run(two({"workers": {"a/1": {"down": [[f"{crash} s", None]]}}}), tmp_path / "run", monkeypatch)
    messages = ended.summary["availability"]["messages"]
    assert (messages["sent"], messages["delivered"], messages["cut"]) == (2, 1, 1)
    first = ended.iterations().iloc[0]
    assert (first["worker"], first["applied"]) == (0, 1)
    (cut,) = ended.metrics().query("kind == 'cut'").to_dict("records")
    assert (cut["worker"], cut["iteration"], cut["batch_size"]) == (1, 1, 16)
    assert cut["compute_seconds"] == pytest.approx(COMPUTED)
    assert cut["wait_seconds"] == pytest.approx(0.02)
    counts = ended.summary["availability"]
    assert counts["computed"] - counts["useful"] == 16
    assert counts["up"] == [1.0, pytest.approx(crash / 4)]


def test_messages_to_a_failed_peer_are_refused_until_its_failure_is_detected(tmp_path, monkeypatch):
    """That is after 450 ms: the peer sends its gradient at 1.56 s in vain, and waits."""
    availability = {"workers": {"a/1": {"down": [["1.2 s", None]]}}, "detection": "0.4 s"}
    ended = run(two(availability), tmp_path / "run", monkeypatch)
    assert ended.summary["availability"]["messages"]["refused"] == 1
    assert times(ended, "lost", 1) == [pytest.approx(1.65)]
    third = ended.iterations().query("worker == 0").iloc[2]
    assert third["virtual_time"] == pytest.approx(1.65)
    assert third["wait_reason"] == "lost"


def test_a_worker_leaves_after_its_iteration_without_lost_work(tmp_path, monkeypatch):
    availability = {"workers": {"a/1": {"down": [["1.2 s", None]], "kind": "leave"}}}
    ended = run(two(availability), tmp_path / "run", monkeypatch)
    counts = ended.summary["availability"]
    assert counts["computed"] == counts["useful"]
    (left,) = times(ended, "left", 1)
    assert 1.6 < left < 1.7
    assert ended.iterations().query("worker == 0")["applied"].tolist()[:4] == [1, 1, 1, 0]


def test_only_members_are_evaluated(tmp_path, monkeypatch):
    ended = run(two(SECOND), tmp_path / "run", monkeypatch)
    evaluated = ended.evaluations().groupby("virtual_time")["worker"].agg(list).to_dict()
    assert {time: workers for time, workers in evaluated.items() if workers != [0, 1]} == {1.5: [0], 2.0: [0]}


def test_a_new_incarnation_draws_other_batches_of_the_same_data():
    setting = Setting.of(two(SECOND))
    first, again, second = (set(setting.sampler(1, incarnation).take(16)) for incarnation in (0, 0, 1))
    assert first == again != second
    assert first | second <= set(setting.shards[1])


def test_a_run_ends_when_all_workers_have_done_their_iterations(tmp_path, monkeypatch):
    """Except those that failed for good."""
    back = churning("dpsgd", WAYS["rejoin"], iterations=8, duration="60 s")
    gone = churning("dpsgd", WAYS["crash"], iterations=8, duration="60 s")
    ended = [run(scenario, tmp_path / name, monkeypatch) for name, scenario in (("back", back), ("gone", gone))]
    assert [each.summary["stopped_by"] for each in ended] == ["iterations", "iterations"]
    assert [len(times(each, "joined", 3)) for each in ended] == [1, 0]


@pytest.mark.parametrize("system", ["dpsgd", "adpsgd"])
def test_the_summary_counts_the_iterations_that_each_worker_did(system, tmp_path, monkeypatch):
    """A worker that rejoins takes its sponsor's iteration number, which may be larger or smaller than its own."""
    ended = run(churning(system, WAYS["rejoin"]), tmp_path / "run", monkeypatch)
    rows = ended.iterations()["worker"].value_counts()
    assert times(ended, "joined", 3)
    assert ended.summary["iterations"]["per_worker"] == [rows[worker] for worker in range(4)]


def test_a_run_without_workers_stalls(tmp_path, monkeypatch):
    availability = {"clouds": {"*": {"down": [["0.5 s", None]]}}}
    ended = run(churning("dpsgd", availability, duration="60 s"), tmp_path / "run", monkeypatch)
    assert ended.summary["stopped_by"] == "stall"
    assert ended.summary["virtual_seconds"] == pytest.approx(0.5)


def test_training_begins_anew_after_an_outage_of_all_workers(tmp_path, monkeypatch):
    availability = {"clouds": {"*": {"down": [["0.5 s", "0.8 s"]]}}}
    ended = run(churning("dpsgd", availability), tmp_path / "run", monkeypatch)
    assert times(ended, "begins_anew", 0) == [pytest.approx(0.8 + 0.06, abs=0.1)]
    assert sum(len(times(ended, "joined", worker)) for worker in range(1, 4)) == 3
    counts = ended.summary["availability"]
    assert counts["useful"] < counts["computed"]


def test_packets_and_availability_are_refused_together(tmp_path):
    with pytest.raises(
        InputError, match=r"^availability: availability is not modelled in a network of packets; allowed: "
    ):
        simulate(churning("dpsgd", WAYS["crash"], network={"model": "packets"}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


BROKEN = "the ring is broken, whatever on_loss says; "
SERVED = ["parameter_server", "async_local_sgd", "fedavg"]
STOPS = {
    **{
        ("ring_allreduce", way): f"{BROKEN}system: baseline computes the same mean without one, and can continue"
        for way in WAYS
    },
    **{("power_sgd", way): POWER_SGD for way in WAYS},
    **{(name, "link"): "a part of the parameters is lost with its server" for name in SERVED},
}
"""Systems that cannot continue after a loss, and their reasons."""
OFTEN = {
    **{
        name: {"name": name, "exchange": {"period": 5}}
        for name in ("diloco", "async_local_sgd", "noloco", "moshpit", "sparse_loco", "halos")
    },
    "decoupled_diloco": {"name": "decoupled_diloco", "exchange": {"period": 6, "delay": 2}},
    "fedavg": {"name": "fedavg", "exchange": {"participation": 1.0, "epochs": 0.1}},
    "streaming_diloco": {"name": "streaming_diloco", "exchange": {"period": 6, "delay": 2}},
}
"""Systems whose default period is longer than the run."""
SEVERAL = [*islice(zip(cycle(sorted(SYSTEMS)), cycle(WAYS), strict=False), 3 * len(SYSTEMS))]
"""Each system with three kinds of churn; `tests/protocol/test_churn.py` has all kinds for their state machines."""


@pytest.mark.parametrize(("system", "way"), [*SEVERAL, *(pair for pair in STOPS if pair not in SEVERAL)])
def test_every_system_continues_or_stops_with_its_reason(tmp_path, monkeypatch, system, way):
    # If both sides of a path have continued, the one that is ahead may wait for the other.
    duration = 3 if way == "link" else 2
    scenario = churning(OFTEN.get(system, system), WAYS[way], duration=f"{duration} s")
    ended = run(scenario, tmp_path / "run", monkeypatch)
    reason = STOPS.get((system, way))
    assert ended.manifest["status"] == ("failed" if reason else "completed")
    stopped_by, _, cause = ended.summary["stopped_by"].partition("; because of ")
    assert stopped_by == (reason or "duration")
    if reason:
        assert cause or way in ("link", "new worker")
        return
    membership = ended.membership()
    assert len(membership)
    if system != "fedavg":  # whose workers count theirs from 0 when they are back
        assert not ended.iterations().duplicated(["worker", "iteration"]).any()
    later = ended.iterations().query(f"virtual_time > {duration - 0.4}")
    expected = {0, 1, 2} if way == "crash" else {0, 1, 2, 3}
    assert set(later["worker"]) == expected
    if way in ("notice", "rejoin", "new worker", "cloud"):
        assert len(membership.query("what == 'joined'")) == (2 if way == "cloud" else 1)
        assert ended.summary["availability"]["state_bytes"] > 0


@pytest.mark.parametrize(
    ("exchange", "way", "reason"),
    [
        ({"route": "ring"}, "crash", f"{BROKEN}route: all_to_all can continue"),
        (
            {"precision": "fp16"},
            "crash",
            "a lost worker's last pseudo-gradient may have reached only some; precision: fp32 can continue",
        ),
        ({"precision": "fp16"}, "notice", "duration"),
    ],
    ids=str,
)
def test_diloco_by_a_ring_or_in_half_precision_continues_or_stops_with_its_reason(
    tmp_path, monkeypatch, exchange, way, reason
):
    system = {"name": "diloco", "exchange": {"period": 5, **exchange}}
    ended = run(churning(system, WAYS[way], duration="2 s"), tmp_path / "run", monkeypatch)
    stopped_by, _, cause = ended.summary["stopped_by"].partition("; because of ")
    assert stopped_by == reason
    assert cause == ("west/1, at 0.5 s" if way == "crash" else "")


SOME = ["dlion", "hop", "parameter_server", "diloco"]


@pytest.mark.parametrize("system", SOME)
def test_a_run_interrupted_during_churn_has_the_same_result(tmp_path, system):
    """Also during notices, handshakes, state transfer, a cut and an outage of a path."""
    availability = {
        "workers": {
            "west/1": {"down": [["0.3 s", "0.6 s"]]},
            "east/1": {"down": [["0.9 s", "1.3 s"]], "kind": "preemption", "notice": "0.1 s"},
            "west/0": {"process": "exponential", "up": "0.8 s", "down": "0.2 s"},
        },
        "links": {} if system == "parameter_server" else {"east-west": {"down": [["1.4 s", "1.6 s"]]}},
        "silence": "0.1 s",
        "detection": "50 ms",
        "restart": "20 ms",
    }
    scenario = churning(OFTEN.get(system, system), availability)
    whole = simulate(scenario, tmp_path / "whole")
    assert len(whole.membership()) > 15
    events = random.Random(system)
    parts = simulate(scenario, tmp_path / "parts", interrupted=After(events.randrange(80)))
    while parts.manifest["status"] == "interrupted":
        parts = resume(tmp_path / "parts", interrupted=After(events.randrange(1, 150)))
    assert len(parts.manifest["resumed_at"]) >= 2
    check_same(parts, whole)
    pd.testing.assert_frame_equal(parts.membership(), whole.membership(), check_exact=True)


def test_true_bandwidths_are_computed_once_for_all_losses_of_an_instant(tmp_path, monkeypatch):
    """Also in a run that is interrupted between two of them."""
    computed, late = [], []

    def computing(transport, pairs, compute=Transport.bytes_per_second):
        computed.append(transport._event_queue.now)
        return compute(transport, pairs)

    def scheduling(event_queue, call, schedule=EventQueue.late):
        late.append(call.__name__)
        schedule(event_queue, call)

    monkeypatch.setattr(Transport, "bytes_per_second", computing)
    monkeypatch.setattr(EventQueue, "late", scheduling)
    scenario = churning({"name": "dlion", "exchange": {"bandwidth": "oracle_share"}}, WAYS["cloud"])
    whole = simulate(scenario, tmp_path / "whole")
    losses = [time for participant in (2, 3) for time in times(whole, "lost", participant)]
    assert len(losses) > len(set(losses))
    assert [computed.count(time) for time in set(losses)] == [1] * len(set(losses))
    late.clear()
    simulate(scenario, tmp_path / "parts", interrupted=lambda: late[-1:] == ["_report_capacities"])
    computed.clear()
    parts = resume(tmp_path / "parts")
    assert parts.manifest["resumed_at"] == [losses[0]]
    assert computed.count(losses[0]) == 1
    check_same(parts, whole)


@pytest.mark.parametrize("system", SOME[:2])
def test_the_same_scenario_has_the_same_result(tmp_path, system):
    availability = {"workers": {"*": {"process": "exponential", "up": "1 s", "down": "0.2 s"}}, "restart": "10 ms"}
    scenario = churning(OFTEN.get(system, system), availability)
    one, other = (simulate(scenario, tmp_path / name, checkpoint_every=None) for name in ("one", "other"))
    check_same(one, other)
    pd.testing.assert_frame_equal(one.membership(), other.membership(), check_exact=True)


UNREACHED = {"links": {"east>west": {"down": [["1 s", "1.5 s"]]}}, "silence": "0.1 s"}
"""The workers in the west do not reach the server in the east; both consider each other lost."""


@pytest.mark.parametrize(
    "workers",
    [
        {"west/0": {"down": [["0 s", "0.95 s"], ["1.05 s", "2.5 s"]], "kind": "leave"}},
        {"west/0": {"down": [["0 s", "0.15 s"]]}},
    ],
    ids=["joins", "has_done_all"],
)
def test_an_unreachable_server_is_found_again(tmp_path, monkeypatch, workers):
    """A joining worker cannot begin without it; one that has done all its iterations is accepted, too."""
    workers = {**workers, "west/1": {"down": [["0 s", "2.5 s"]]}}
    scenario = churning("parameter_server", {**UNREACHED, "workers": workers}, iterations=8, duration="60 s")
    ended = run(scenario, tmp_path / "run", monkeypatch)
    assert ended.summary["stopped_by"] == "iterations"
    joined = ended.membership().query("what == 'joined' and virtual_time > 1.5")
    assert set(joined["participant"]) <= {2, 3}
    assert len(joined)


edges = st.lists(st.integers(0, 40), min_size=1, max_size=5, unique=True).map(sorted)


@st.composite
def availabilities(draw):
    """Outages of some workers and paths; all return, except at most one worker."""

    def down(is_for_good=False):
        found = [f"{edge / 20} s" for edge in draw(edges)]
        found = [*found, *([] if len(found) % 2 == 0 else [None if is_for_good else "2.5 s"])]
        return {"down": [list(each) for each in zip(found[::2], found[1::2], strict=True)]}

    def worker(is_for_good):
        kind = draw(st.sampled_from(["crash", "preemption", "leave"]))
        return {**down(is_for_good), "kind": kind, **({"notice": "0.2 s"} if kind == "preemption" else {})}

    names = ["east/0", "east/1", "west/0", "west/1"]
    chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True))
    for_good = draw(st.sampled_from([None, *chosen])) if len(chosen) < 4 else None
    links = draw(st.lists(st.sampled_from(["east>west", "west>east"]), max_size=2, unique=True))
    return {
        "workers": {name: worker(name == for_good) for name in chosen},
        "links": {name: {"down": [["1 s", "1.5 s"]]} for name in links},
        "on_loss": draw(st.sampled_from(["go_on", "go_on", "wait"])),
        "sponsor": draw(st.sampled_from(["nearest", "least_loaded", "best"])),
        "detection": draw(st.sampled_from(["0 s", "0.3 s"])),
        "silence": draw(st.sampled_from(["0.1 s", "2 s"])),
        "restart": draw(st.sampled_from(["0 s", "50 ms"])),
    }


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("system", sorted(SYSTEMS))
@given(availability=availabilities())
def test_runs_end_whatever_the_availability(tmp_path_factory, monkeypatch, system, availability):
    """All do their iterations, except in a ring, without a server, or if they wait for a worker that never returns."""
    scenario = churning(OFTEN.get(system, system), availability, iterations=8, duration="60 s")
    ended = run(scenario, tmp_path_factory.mktemp("churn") / "run", monkeypatch)
    if ended.manifest["status"] == "failed":
        assert system in ("ring_allreduce", "power_sgd", *SERVED)
    elif availability["on_loss"] == "wait":
        assert ended.summary["stopped_by"] in ("iterations", "stall")
    else:
        assert ended.summary["stopped_by"] == "iterations"
