"""How long it took to notice losses and returns, in two runs."""

import json
import math

import pytest

from dlion_sim.analysis import compare
from dlion_sim.analysis.fidelity import max_difference
from dlion_sim.results import MembershipRow, MetricsRow, Run, RunWriter
from dlion_sim.results.atomic import json_bytes


def written(folder, *rows) -> Run:
    """A run of three workers in which that became of who."""
    manifest = {"workers": ["a/0", "a/1", "a/2"], "scenario": "small", "system": "baseline", "seed": 0}
    writer = RunWriter.create(
        folder, scenario_yaml="name: small\n", manifest={**manifest, "way": "simulate", "evaluated_on": "test"}
    )
    for time in range(1, 41):
        for worker in range(3):
            writer.append(MetricsRow(time, time, worker, "iteration", time, 1.0, batch_size=8))
    for row in rows:
        writer.append(MembershipRow(*row))
    writer.finish({"status": "completed", "stopped_by": "duration"})
    return Run.open(folder)


def killed(later=0.0, **joined):
    """Worker 2 goes at 10 s and is back at 20 s."""
    return (
        (10.0, 2, 0, "down"),
        (10.1 + later, 2, 0, "lost", 0, 0.1 + later),
        (10.1, 2, 0, "lost", 1, 0.1),
        (20.0, 2, 1, "up"),
        (20.1, 2, 1, "found", 0),
        (20.1, 0, 0, "found", 2),
        (24.0, 2, 1, "joined", 0, joined.get("joined", 4.0), 400, 17),
    )


def test_losses_and_returns_are_compared(tmp_path):
    simulated, real = written(tmp_path / "a", *killed()), written(tmp_path / "b", *killed(0.15, joined=5.0))
    fidelity = compare(simulated, real)
    assert fidelity.verdict["to_notice"] == pytest.approx(0.15 / 2)  # of the least time that differences are held to
    assert fidelity.verdict["to_rejoin"] == pytest.approx(1 / 4)
    assert len(fidelity.delays) == 4, "lost by two, found again by one of them, joined"
    assert compare(simulated, simulated).verdict["to_notice"] == 0


def test_a_loss_without_a_delay_counts_by_its_time(tmp_path):
    """As where a link is silent."""
    simulated = written(tmp_path / "a", (16.0, 0, 0, "lost", 2, 6.0), (30.0, 0, 0, "found", 2))
    real = written(tmp_path / "b", (15.7, 0, 0, "lost", 2), (30.5, 0, 0, "found", 2))
    delays = compare(simulated, real).delays
    assert delays.loc[("lost", 0, 2, 0)].tolist() == pytest.approx([6.0, 5.7])
    assert delays.loc[("found", 0, 2, 0)].tolist() == pytest.approx([14.0, 14.8])
    assert max_difference(delays, "lost") == pytest.approx(0.05)


def test_an_event_of_one_run_only_is_an_infinite_difference(tmp_path):
    fidelity = compare(written(tmp_path / "a", *killed()), written(tmp_path / "b", *killed()[:3]))
    assert fidelity.verdict["to_notice"] == 0
    assert math.isinf(fidelity.verdict["to_rejoin"])
    assert json.loads(json_bytes(fidelity.document))["verdict"]["to_rejoin"] is None


def test_without_outages_there_are_no_delays(tmp_path):
    fidelity = compare(written(tmp_path / "a"), written(tmp_path / "b"))
    assert "to_notice" not in fidelity.verdict
    assert "delays" not in fidelity.document
