"""Causes of waits, in runs written by hand."""

import pytest

from dlion_sim.analysis.stalls.attribution import stalls, summary_sentence
from dlion_sim.analysis.stalls.steps import steps
from dlion_sim.analysis.stalls.waits import Causes
from dlion_sim.results import MetricsRow, Run, RunWriter, TransfersRow

CLOUDS = ["east", "east", "west", "west"]
"""Of three workers, and of a server that has a machine of its own."""


def run(folder, metrics, transfers=()):
    """A run of rows (worker, computed, waited, end, waited for, reason) and messages (sender, receiver, begin, end).

    Of messages in packets a fifth number tells when they were there. A seventh of rows tells for how much of the
    computation samples had to be prepared.
    """
    writer = RunWriter.create(
        folder,
        scenario_yaml="name: by-hand\n",
        manifest={
            "scenario": "by-hand",
            "system": "baseline",
            "seed": 0,
            "way": "live",
            "workers": ["east/0", "east/1", "west/0"],
            "servers": ["server 3"],
            "clouds": CLOUDS,
        },
    )
    for number, (worker, computed, waited, end, peer, reason, *prep) in enumerate(metrics):
        row = MetricsRow(end, end, worker, "iteration", number, 1.0, batch_size=8, global_batch_size=8)
        row = row._replace(compute_seconds=computed, prep_seconds=prep[0] if prep else None)
        writer.append(row._replace(wait_seconds=waited, waited_for=peer, wait_reason=reason))
    for sender, receiver, begin, end, *delivered in transfers:
        row = TransfersRow(begin, end, sender, receiver, "data", "contribution", 100)
        writer.append(row._replace(delivered=delivered[0] if delivered else None))
    writer.finish({"scenario": "by-hand", "status": "completed"})
    return Run.open(folder)


def causes_of_last(run, worker=0):
    of_workers = steps(run)
    return [
        (cause.what, pytest.approx(cause.seconds), cause.sender, cause.receiver)
        for cause in Causes(run, of_workers).of(of_workers[worker][-1])
    ]


def test_a_wait_is_for_the_message_and_before_for_the_longer_computation(tmp_path):
    rows = [(2, 3.0, 0.0, 3.0, None, None), (0, 1.0, 3.0, 4.0, 2, "contribution")]
    found = causes_of_last(run(tmp_path / "run", rows, [(2, 0, 3.0, 4.0)]))
    assert found == [("message", 1.0, 2, 0), ("computing", 2.0, 2, 0)]


def test_a_later_but_equal_computation_is_no_straggler(tmp_path):
    """West begins a second later as it had waited for a message itself: that is what east waits for."""
    rows = [
        (0, 1.0, 0.0, 1.0, None, None),
        (2, 1.0, 1.0, 2.0, 0, "contribution"),
        (2, 1.0, 0.0, 3.0, None, None),
        (0, 1.0, 2.0, 4.0, 2, "contribution"),
    ]
    found = causes_of_last(run(tmp_path / "run", rows, [(0, 2, 1.0, 2.0), (2, 0, 3.0, 4.0)]))
    assert found == [("message", 1.0, 2, 0), ("message", 1.0, 0, 2)]


def test_waiting_for_samples_is_no_straggler(tmp_path):
    """West computes a second longer, and waits for its samples for two."""
    rows = [(2, 5.0, 0.0, 5.0, None, None, 3.0), (0, 2.0, 4.0, 6.0, 2, "contribution", 1.0)]
    told = run(tmp_path / "run", rows, [(2, 0, 5.0, 6.0)])
    assert causes_of_last(told) == [("message", 1.0, 2, 0), ("computing", 1.0, 2, 0), ("prep", 2.0, 2, 0)]
    found = stalls(told)
    assert found.seconds.loc[0, ["compute", "prep", "network", "straggler"]].tolist() == [1.0, 3.0, 1.0, 1.0]
    assert summary_sentence(found) == "east waits 83% of its time, mostly for samples to be prepared: 50%"


def test_a_delay_of_earlier_iterations_is_no_straggler(tmp_path):
    """As they exchange but every second time: west had waited for a second, and goes on a second later ever since."""
    rows = [(2, 1.0, 1.0, 2.0, 0, "contribution"), (2, 1.0, 0.0, 3.0, None, None), (2, 1.0, 0.0, 4.0, None, None)]
    rows += [(0, 1.0, 0.0, end, None, None) for end in (1.0, 2.0)] + [(0, 1.0, 2.0, 5.0, 2, "contribution")]
    found = causes_of_last(run(tmp_path / "run", rows, [(0, 2, 1.0, 2.0), (2, 0, 4.0, 5.0)]))
    assert found == [("message", 1.0, 2, 0), ("message", 1.0, 0, 2)]


def test_a_queued_message_counts_from_the_begin_of_its_queue(tmp_path):
    rows = [(2, 1.0, 0.0, 1.0, None, None), (2, 1.0, 0.0, 2.0, None, None), (0, 1.0, 4.0, 5.0, 2, "contribution")]
    found = causes_of_last(run(tmp_path / "run", rows, [(2, 0, 1.0, 3.0), (2, 0, 3.0, 5.0)]))
    assert found == [("message", 4.0, 2, 0)]


def test_waits_are_traced_through_a_server(tmp_path):
    rows = [(2, 2.5, 0.0, 2.5, None, None), (0, 1.0, 5.0, 6.0, 3, "contribution")]
    messages = [(0, 3, 1.0, 1.5), (2, 3, 2.5, 5.0), (3, 0, 5.0, 6.0)]
    found = causes_of_last(run(tmp_path / "run", rows, messages))
    assert found == [("message", 1.0, 3, 0), ("message", 2.5, 2, 3), ("computing", 1.5, 2, 3)]


def test_packets_arrive_when_they_are_delivered(tmp_path):
    """What left first was held up, and came last."""
    rows = [(2, 2.5, 0.0, 2.5, None, None), (0, 1.0, 5.0, 6.0, 3, "contribution")]
    messages = [(0, 3, 1.0, 4.0), (2, 3, 2.5, 2.6, 5.0), (3, 0, 5.0, 6.0)]
    found = causes_of_last(run(tmp_path / "run", rows, messages))
    assert found == [("message", 1.0, 3, 0), ("message", 2.5, 2, 3), ("computing", 1.5, 2, 3)]


def test_a_wait_is_traced_through_thousands_of_messages(tmp_path):
    times = [1 + number / 1000 for number in range(2001)]
    messages = [(number % 2, 1 - number % 2, *times[number : number + 2]) for number in range(2000)]
    rows = [(1, 1.0, 0.0, 1.0, None, None), (0, 1.0, 2.0, 3.0, 1, "contribution")]
    found = run(tmp_path / "run", rows, messages)
    of_workers = steps(found)
    causes = list(Causes(found, of_workers).of(of_workers[0][-1]))
    assert sum(cause.seconds for cause in causes if cause.what == "message") == pytest.approx(2.0)


def test_messages_without_a_record_count_from_their_computation(tmp_path):
    rows = [(2, 3.0, 0.0, 3.0, None, None), (0, 1.0, 3.0, 4.0, 2, "contribution")]
    found = causes_of_last(run(tmp_path / "run", rows))
    assert found == [("message", 1.0, 2, 0), ("computing", 2.0, 2, 0)]


def test_a_wait_for_the_own_queue_counts_for_its_link(tmp_path):
    found = causes_of_last(run(tmp_path / "run", [(0, 1.0, 2.0, 3.0, 2, "queue")]))
    assert found == [("message", 2.0, 0, 2)]


def test_unknown_causes_count_as_other(tmp_path):
    told = run(tmp_path / "run", [(0, 1.0, 2.0, 3.0, None, None), (0, 1.0, 0.0, 5.0, None, None)])
    assert causes_of_last(told) == []
    found = stalls(told)
    assert found.seconds.loc[0, ["compute", "other"]].tolist() == [2.0, 3.0]
    assert found.shares.loc[0].sum() == pytest.approx(1)
    assert found.shares.loc[1].sum() == 0


def test_kinds_distinguish_links_within_and_between_clouds(tmp_path):
    rows = [
        (2, 1.0, 0.0, 1.0, None, None),
        (1, 1.0, 3.0, 4.0, 0, "contribution"),
        (0, 1.0, 5.0, 6.0, 2, "contribution"),
    ]
    found = stalls(run(tmp_path / "run", rows, [(0, 1, 1.0, 4.0), (2, 0, 1.0, 6.0)]))
    assert found.seconds.loc[1, "interconnect"] == pytest.approx(3.0)
    assert found.seconds.loc[0, "network"] == pytest.approx(5.0)
    assert found.per_iteration["compute"] == pytest.approx(1.0)
    assert summary_sentence(found) == "east waits 80% of its time, mostly for west -> east: 50%"


def test_the_warm_up_and_the_end_do_not_count(tmp_path):
    rows = [(worker, 1.0, 0.0, end, None, None) for worker, until in ((0, 4), (1, 6)) for end in range(1, until + 1)]
    found = stalls(run(tmp_path / "run", rows), warm_up=1)
    assert found.iterations == {0: 3, 1: 3, 2: 0}
    assert found.totals.tolist() == [3.0, 3.0, 0.0]
    assert summary_sentence(found) == "no worker waits for more than 1% of its time"
