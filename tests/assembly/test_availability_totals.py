"""What a run sums up of who came and went."""

import pytest

from dlion_sim.assembly import Recorder
from dlion_sim.protocol.events import Report, Unfinished
from dlion_sim.results import Ending, MembershipRow, Run, RunWriter

MANIFEST = {"scenario": "s", "system": "baseline", "seed": 1}


@pytest.fixture
def recorder(tmp_path):
    return Recorder(RunWriter.create(tmp_path / "run", scenario_yaml="", manifest=MANIFEST), range(2))


def iteration(number: int) -> Report:
    return Report(number, 1.0, 16, 32, None, 0, 0, 0.5, 0.0)


def told(recorder, seconds=10.0, **more):
    return recorder.summary(Ending("completed", "duration", seconds), **more).get("availability")


def test_no_totals_without_outages(recorder):
    recorder.iteration(0, iteration(1), 1.0)
    assert told(recorder) is None


def test_shares_and_delays(recorder):
    recorder.iteration(0, iteration(1), 1.0)
    recorder.lost(0, Unfinished("unfinished", 2, 0.25), 16, 2.0)
    for row in (
        MembershipRow(2.0, 0, 0, "down"),
        MembershipRow(2.5, 0, 0, "lost", 1, 0.5),
        MembershipRow(6.0, 0, 1, "up"),
        MembershipRow(6.5, 0, 1, "joined", 1, 0.5, 4000, 7),
        MembershipRow(8.0, 1, 0, "left"),
        MembershipRow(8.25, 1, 0, "lost", 0, 0.25),
    ):
        recorder.append(row)
    counts = {"sent": 3, "delivered": 1, "cut": 1, "refused": 1, "under_way": 0}
    assert told(recorder, messages=counts) == {
        "up": [0.6, 0.8],
        "computed": 32,
        "useful": 16,
        "lost_seconds": 0.25,
        "state_bytes": 4000,
        "to_notice": {"mean": 0.375, "most": 0.5},
        "to_join": {"mean": 0.5, "most": 0.5},
        "messages": counts,
    }
    assert recorder.iterations == {0: 7, 1: 0}


def test_samples_before_all_state_was_lost_are_not_useful(recorder):
    """And what others still have is: it counts who is left, not who begins with nothing."""
    for number in (1, 2):
        recorder.iteration(0, iteration(number), number)
        recorder.iteration(1, iteration(number), number)
    recorder.append(MembershipRow(3.0, 0, 0, "down"))
    recorder.append(MembershipRow(3.5, 0, 1, "up"))
    recorder.append(MembershipRow(3.5, 0, 1, "begins_anew", None, 0.0, 0, 0))
    assert told(recorder)["useful"] == 64
    for worker in (0, 1):
        recorder.append(MembershipRow(4.0, worker, 1 - worker, "down"))
    recorder.append(MembershipRow(5.0, 1, 1, "begins_anew", None, 0.0, 0, 0))
    recorder.iteration(1, iteration(1), 6.0)
    assert (told(recorder)["computed"], told(recorder)["useful"]) == (80, 16)


def test_lost_iterations_and_profiling_have_rows(recorder, tmp_path):
    recorder.lost(0, Unfinished("profile", 0, 0.25), None, 0.25)
    recorder.lost(1, Unfinished("unfinished", 1, 0.125, 0.5, 0, "contribution"), 16, 1.0)
    recorder.lost(1, None, 16, 2.0)
    recorder.flush()
    rows = Run.open(tmp_path / "run").metrics()
    assert rows["kind"].tolist() == ["profile", "cut"]
    assert rows["batch_size"].fillna(0).tolist() == [0, 16]
    assert rows["wait_seconds"].tolist() == [0.0, 0.5]
