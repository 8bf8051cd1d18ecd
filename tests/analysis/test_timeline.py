"""Transfers in runs with outages."""

import pytest

from dlion_sim.analysis.timeline import transfers
from dlion_sim.results import MembershipRow, MetricsRow, Run, RunWriter, TransfersRow


@pytest.mark.parametrize(
    ("ends", "rows", "end"),
    [
        ((0, 1), [(6.0, 0, 0, "down"), (6.5, 0, 0, "lost", 1)], 6.0),
        ((0, 1), [(6.0, 1, 0, "left")], 6.0),
        ((0, 1), [(3.0, 1, 0, "down"), (8.0, 1, 1, "down")], 8.0),
        ((0, 1), [(7.0, 1, 0, "lost", 0)], 7.0),
        ((0, 1), [(6.0, 2, 0, "down"), (7.0, 2, 0, "lost", 0), (7.0, 0, 0, "lost", 2)], 20.0),
        ((0, 1), [], 20.0),
    ],
    ids=["sender", "receiver", "later", "path", "others", "nobody"],
)
def test_an_unfinished_transfer_ends_when_an_end_is_lost(tmp_path, ends, rows, end):
    writer = RunWriter.create(tmp_path / "run", scenario_yaml="", manifest={"workers": ["a/0", "a/1", "a/2"]})
    writer.append(MetricsRow(20.0, 0.0, 0, "iteration", 1, 1.0))
    writer.append(TransfersRow(5.0, None, *ends, "data", "contribution", 9))
    writer.append(TransfersRow(5.0, 5.5, 1, 0, "data", "contribution", 9))
    for row in rows:
        writer.append(MembershipRow(*row))
    writer.finish({"status": "completed"})
    assert transfers(Run.open(tmp_path / "run"))[["sender", "end"]].to_numpy().tolist() == [[1, 5.5], [0, end]]
