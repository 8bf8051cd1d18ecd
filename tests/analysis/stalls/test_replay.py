"""What-if replays of runs computed by hand."""

import pytest

from dlion_sim.analysis.stalls.replay import Replay
from dlion_sim.results import MetricsRow, Run, RunWriter, TransfersRow
from dlion_sim.scenario import dump
from tests.simulation.scenarios import digits

SAMPLES = 12


def run(folder, iterations, transfers, *, scenario="name: by-hand\n", servers=()):
    """A run of rows (worker, prep, computed, waited, end) and messages (sender, receiver, begin, end), in seconds."""
    workers = 1 + max(worker for worker, *_ in iterations)
    writer = RunWriter.create(
        folder,
        scenario_yaml=scenario,
        manifest={
            "scenario": "by-hand",
            "system": "baseline",
            "seed": 0,
            "way": "simulate",
            "workers": [f"east/{worker}" for worker in range(workers)],
            "servers": [*servers],
            "clouds": ["east"] * (workers + len(servers)),
            "partition": [[1000]] * workers,
        },
    )
    done = [0] * workers
    for worker, prep, computed, waited, end in iterations:
        done[worker] += 1
        row = MetricsRow(end, end, worker, "iteration", done[worker], 1.0, batch_size=SAMPLES)
        row = row._replace(global_batch_size=SAMPLES * workers, wait_seconds=waited)
        writer.append(row._replace(compute_seconds=prep + computed, prep_seconds=prep, fetch_seconds=0.0))
    for sender, receiver, begin, end in transfers:
        writer.append(TransfersRow(begin, end, sender, receiver, "data", "contribution", 100))
    writer.finish({"scenario": "by-hand", "status": "completed"})
    return Run.open(folder)


def equal(folder, computed, iterations):
    """Two workers that compute for so long in each iteration, and need not wait."""
    rows = [(worker, 0.0, computed, 0.0, computed * (1 + k)) for k in range(iterations) for worker in (0, 1)]
    return Replay(run(folder, rows, []))


def exchanging(folder):
    """Two workers that compute for 1 s and for 3 s, and whose messages take 2 s: both need 8 s for two iterations."""
    rows, messages = [], []
    for begin in (0.0, 8.0, 16.0):
        rows += [(1, 0.0, 3.0, 0.0, begin + 3), (0, 0.0, 1.0, 4.0, begin + 5)]
        rows += [(1, 0.0, 3.0, 2.0, begin + 8), (0, 0.0, 1.0, 2.0, begin + 8)]
        messages += [(0, 1, begin + 1, begin + 3), (1, 0, begin + 3, begin + 5)]
        messages += [(0, 1, begin + 6, begin + 8), (1, 0, begin + 6, begin + 8)]
    return run(folder, rows, messages)


def test_an_unchanged_replay_equals_the_run(tmp_path):
    assert Replay(exchanging(tmp_path / "run")).iteration_seconds(2) == pytest.approx(4.0)


@pytest.mark.parametrize(("computed", "takes"), [(2.0, 4.0), (0.5, 2.5), (5.0, 7.0)])
def test_with_equal_computations_iterations_end_with_their_last_message(tmp_path, computed, takes):
    """Who computes for 3 s is waited for, yet with 2 s for both an iteration takes as long as with 1 s and 3 s."""
    again = Replay(exchanging(tmp_path / "run"))
    others = equal(tmp_path / "equal", computed, 6)
    assert again.iteration_seconds(2, computing_as=others) == pytest.approx(takes)


def test_later_messages_of_a_ring_depend_on_earlier_ones_and_their_queue(tmp_path):
    """Of two workers that compute for 1 s and 3 s and pass on two chunks of 1 s each: 5 s, or 4 s with 2 s for both."""
    rows, messages = [], []
    for begin in (0.0, 5.0, 10.0):
        rows += [(0, 0.0, 1.0, 4.0, begin + 5), (1, 0.0, 3.0, 2.0, begin + 5)]
        messages += [(0, 1, begin + 1, begin + 2), (1, 0, begin + 3, begin + 4)]
        messages += [(0, 1, begin + 4, begin + 5), (1, 0, begin + 4, begin + 5)]
    again = Replay(run(tmp_path / "run", rows, messages))
    assert again.iteration_seconds(1) == pytest.approx(5.0)
    assert again.iteration_seconds(1, computing_as=equal(tmp_path / "equal", 2.0, 3)) == pytest.approx(4.0)


def test_hidden_preparation_of_samples_saves_nothing(tmp_path):
    """Of a server, with messages of 1 s to and from one worker and 4 s of the other; batches are ready after 10 s.

    The near worker waits for 4 s for its samples, the far one for 1 s: without, both would take 9 s.
    """
    rows, messages = [], []
    for taken in (10.0, 20.0, 30.0, 40.0):
        near, far = (10.0, 10.0) if taken == 10 else (4.0, 1.0)
        rows += [(0, near, 1.0, 5.0, taken + 6), (1, far, 1.0, 8.0, taken + 9)]
        messages += [(0, 2, taken + 1, taken + 2), (1, 2, taken + 1, taken + 5)]
        messages += [(2, 0, taken + 5, taken + 6), (2, 1, taken + 5, taken + 9)]
    fed = dump(digits(f"workload.input={{prep_rate: {SAMPLES / 10}}}"))
    again = Replay(run(tmp_path / "run", rows, messages, scenario=fed, servers=["server 2"]))
    assert again.iteration_seconds(1) == pytest.approx(10.0)
    assert again.iteration_seconds(1, prepared=False) == pytest.approx(9.0)
