"""Workers joined by a list: updates, waits and messages."""

import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.batching.weighted_dynamic import ComputeProfile
from dlion_sim.protocol.events import (
    GradientReady,
    MessageArrived,
    MessageSent,
    MessageTimed,
    ProfileReady,
    Send,
    Started,
    Unfinished,
)
from dlion_sim.protocol.messages import Contribution, Message, Weights
from dlion_sim.protocol.phases import Phase
from tests.protocol.joined import noisy, run, setup, trained, workers_of

ASYNCHRONOUS = {"name": "baseline", "synchronization": "asynchronous"}
RATE = 0.1


@pytest.mark.parametrize(
    ("system", "same"),
    [
        ({"name": "baseline", "synchronization": {"kind": "bounded_staleness", "staleness": 0}}, {"name": "baseline"}),
        (
            {"name": "hop", "synchronization": {"backup_workers": 0, "staleness": 0, "max_gap": 3}},
            {"name": "baseline"},
        ),
        ({"name": "gaia", "exchange": {"threshold": 0}}, {"name": "baseline"}),
        ({"name": "ako", "exchange": {"partitions": 1}}, ASYNCHRONOUS),
    ],
    ids=str,
)
def test_special_cases_equal_other_systems_to_the_bit(system, same):
    assert all(map(torch.equal, trained(system), trained(same)))


def test_unequal_batches_weigh_by_the_sender_over_the_receiver():
    """Sender j's gradient enters receiver k's step times LBS_j / LBS_k; swapped, it would be the inverse."""
    (worker,) = workers_of(
        {"name": "dlion", "batching": {"profile_batch_sizes": []}, "synchronization": "asynchronous"},
        [setup(0, workers=2, batch_size=20)],
    )
    worker.handle(Started(), 0.0)
    theirs = Message(1, Contribution(0, 40, 100.0), (torch.full((6,), 1.0),))
    worker.handle(MessageArrived(theirs), 0.5)
    worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 1.0)
    torch.testing.assert_close(worker.replica.parameters, torch.full((6,), -0.1 * (40 / 20) / 2))


def arrived(sender, iteration):
    return MessageArrived(Message(sender, Contribution(iteration, 32, 100.0), (torch.zeros(6),)))


def report_of(actions):
    (report,) = (action for action in actions if type(action).__name__ == "Report")
    return report.wait_seconds, report.waited_for, report.wait_reason


def test_a_report_names_the_peer_whose_message_ended_the_wait():
    (worker,) = workers_of({"name": "baseline"}, [setup()])
    worker.handle(Started(), 0.0)
    worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 1.0)
    worker.handle(arrived(1, 0), 2.0)
    assert report_of(worker.handle(arrived(2, 0), 3.0)) == (2.0, 2, "contribution")
    for peer in (1, 2):
        worker.handle(arrived(peer, 1), 3.5)
    assert report_of(worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 4.0)) == (0.0, None, None)


def test_a_report_names_the_link_that_a_worker_waited_for():
    (worker,) = workers_of(
        {"name": "baseline", "synchronization": {"kind": "asynchronous", "send_buffer": 1}}, [setup(0, workers=2)]
    )
    worker.handle(Started(), 0.0)
    for end in (1.0, 2.0):
        sent = worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), end)
    size = next(action.message.size for action in sent if isinstance(action, Send))
    assert worker.unfinished(2.5) == Unfinished("unfinished", 2, 1.0, 0.5, 1, "queue")
    assert report_of(worker.handle(MessageSent(1, size), 3.0)) == (1.0, 1, "queue")


def test_the_unfinished_iteration_is_known_at_any_time():
    (worker,) = workers_of({"name": "dlion", "synchronization": "synchronous"}, [setup()])
    assert worker.unfinished(0.0) is None
    worker.handle(Started(), 0.0)
    assert worker.unfinished(0.5) == Unfinished("profile", 0, 0.5)
    worker.handle(ProfileReady(((32, 1.0),)), 1.0)
    assert worker.unfinished(1.5) == Unfinished("unfinished", 1, 0.5)
    worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 2.0)
    worker.handle(arrived(1, 0), 3.0)
    assert worker.unfinished(9.0) == Unfinished("unfinished", 1, 1.0, 7.0, 2, "contribution")


def computes(actions):
    return [action for action in actions if type(action).__name__ == "Compute"]


@pytest.mark.parametrize("backups", [0, 3])
def test_a_message_does_not_cause_a_check_of_all_peers(backups):
    peers = 100
    synchronization = {"kind": "bounded_staleness", "staleness": 0, "backup_workers": backups}
    (worker,) = workers_of({"name": "baseline", "synchronization": synchronization}, [setup(0, workers=peers + 1)])
    asked, waits_for = [], worker.choices.synchronization.waits_for
    worker.choices.synchronization.waits_for = lambda *about: asked.append(about) or waits_for(*about)
    worker.handle(Started(), 0.0)
    worker.handle(GradientReady(1.0, torch.ones(6), 1.0), 1.0)
    for heard, peer in enumerate(range(1, peers + 1)):
        assert worker.iteration == (heard >= peers - backups)
        worker.handle(MessageArrived(Message(peer, Contribution(0, 8), (torch.ones(6),))), 2.0)
    assert len(asked) < peers * (5 + 2 * backups)


@given(st.lists(st.integers(0, 2), min_size=30, max_size=80), st.integers(0, 4))
def test_no_schedule_lets_a_worker_lead_by_more_than_the_bound(turns, bound):
    """Whoever computes next, nobody ends an iteration more than `bound` ahead of what a peer has sent."""
    system = {"name": "baseline", "synchronization": {"kind": "bounded_staleness", "staleness": bound}}
    workers = workers_of(system, [setup(index) for index in range(3)])
    for worker in workers:
        worker.handle(Started(), 0.0)
    sent = [-1, -1, -1]
    for turn in turns:
        worker = workers[turn]
        if worker.phase is not Phase.COMPUTING:
            continue
        sent[turn] = worker.iteration
        for action in worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 0.0):
            if isinstance(action, Send):
                workers[action.peer].handle(MessageArrived(action.message), 0.0)
        assert all(one.iteration <= min(sent) + bound + 1 for one in workers)


def test_without_a_send_buffer_an_iteration_ends_when_all_its_messages_are_sent():
    """As in TF.AKO, which sends first and then takes what has come: what comes meanwhile is of the same step."""
    (worker,) = workers_of({**ASYNCHRONOUS, "synchronization": {"kind": "asynchronous", "send_buffer": 0}}, [setup()])
    worker.handle(Started(), 0.0)
    before = worker.replica.parameters.clone()
    assert not computes(worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 1.0))
    assert not computes(worker.handle(MessageSent(1, 100), 2.0))
    assert not computes(worker.handle(MessageArrived(Message(2, Contribution(0, 32), (torch.ones(6),))), 2.5))
    assert torch.equal(worker.replica.parameters, before)
    assert computes(worker.handle(MessageSent(2, 100), 3.0))
    assert (worker.replica.parameters < before).all()


def test_weights_take_nothing_of_a_links_buffer_or_budget():
    """Only what iterations send is known of a link."""
    system = {
        "name": "dlion",
        "batching": {"profile_batch_sizes": []},
        "synchronization": {"kind": "asynchronous", "send_buffer": 1},
        "knowledge_transfer": {"kind": "weight_exchange", "period": 1},
    }
    (worker,) = workers_of(system, [setup(0, workers=2)])
    worker.handle(Started(), 0.0)
    worker.handle(MessageTimed(1, 1000, 1.0), 0.5)
    links = worker.setup.links
    for end in (1.0, 2.0):
        actions = worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), end)
        sent = [type(action.message.body) for action in actions if isinstance(action, Send)]
        assert sent.count(Weights) == 1
        assert computes(actions), "one message waits, and the buffer has room for it"
        worker.handle(MessageSent(1, 100), end)
        assert links.budget(1, end) == 1000


def test_dynamic_batches_adapt_to_a_change_of_speed_and_keep_their_sum():
    """One worker becomes three times slower: within a few iterations of that, times are equal again (within 1.2)."""
    slow_from = 30

    def seconds(worker, batch_size):
        factor = 3 if worker.setup.worker == 2 and worker.iteration >= slow_from else 1
        return 0.01 + 0.002 * batch_size * factor

    system = {"name": "dlion", "batching": {"growth": "none"}, "synchronization": "synchronous"}
    workers = workers_of(system, [setup(index, iterations=60, variables=(3,)) for index in range(3)])
    reports = run(workers, noisy, seconds)

    def sizes(iteration):
        return [each[iteration].batch_size for each in reports]

    assert sizes(20) == [32, 32, 32]
    assert sum(sizes(59)) == 96
    times = [each[59].compute_seconds for each in reports]
    assert max(times) / min(times) < 1.2
    settled = next(i for i in range(slow_from, 60) if sizes(i)[2] < 20)
    assert settled <= slow_from + 5, "two surprises, and the way to the others"


def test_a_fit_is_shared_only_when_it_changes():
    workers = workers_of(
        {"name": "dlion", "knowledge_transfer": "none"}, [setup(index, iterations=20) for index in range(3)]
    )
    shared = [action for worker in workers[:1] for event in (Started(),) for action in worker.handle(event, 0.0)]
    profile = shared[0]
    assert profile.batch_sizes == (8, 16, 32), "a quarter, a half and the whole of the first batch"
    first = workers[0].handle(ProfileReady(tuple((b, 0.01 + 0.001 * b) for b in profile.batch_sizes)), 1.0)
    assert [type(a.message.body) for a in first if isinstance(a, Send)] == [ComputeProfile] * 2
    second = workers[0].handle(GradientReady(1.0, torch.ones(6), 0.01 + 0.001 * 32), 2.0)
    assert not [a for a in second if isinstance(a, Send) and isinstance(a.message.body, ComputeProfile)]


@pytest.mark.parametrize(
    "system",
    [{"name": "ako"}, {**ASYNCHRONOUS, "knowledge_transfer": {"kind": "weight_exchange", "period": 2}}],
    ids=str,
)
def test_a_worker_that_has_finished_keeps_nothing_of_what_slower_ones_send(system):
    (one,) = workers_of(system, [setup(0, iterations=1)])
    one.handle(Started(), 0.0)
    one.handle(GradientReady(1.0, torch.ones(6), 1.0), 1.0)
    assert one.phase is Phase.STOPPED
    values = weakref.WeakSet()
    for iteration in range(3):
        for body in (Contribution(iteration, 32), *[Weights(iteration)] * ("knowledge_transfer" in system)):
            tensor = torch.ones(6)
            values.add(tensor)
            one.handle(MessageArrived(Message(1, body, (tensor,))), 2.0 + iteration)
    del tensor
    assert not values
