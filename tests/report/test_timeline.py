"""Pieces of timelines, compared with their spans."""

import base64

import numpy as np
import pandas as pd
import pytest

from dlion_sim.report import timeline as module
from dlion_sim.report.timeline import BLOCKED, COMPUTE, DOWN, PROFILE, WAIT, timeline
from dlion_sim.results import MetricsRow
from tests.made_up import made_up_run
from tests.report.large import large_run

TYPES = {"i4": "<i4", "u1": "|u1", "i2": "<i2", "f4": "<f4", "f8": "<f8"}


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["bdata"]), TYPES[packed["dtype"]])


def pieces(run, end, metrics=None):
    """The pieces as a table in seconds, with each one's worker."""
    data = timeline(run, run.metrics() if metrics is None else metrics, end)
    table = pd.DataFrame({name: unpacked(data[name]) for name in ("begin", "end", "kind", "peer", "computing")})
    table[["begin", "end"]] *= data["seconds"] / data["ticks"]
    return table.assign(worker=np.repeat(np.arange(len(data["workers"])), np.diff(data["first"]))), data


def metrics(*rows):
    """A table of one worker's rows: (kind, end, computing, waiting, for whom, why)."""
    return pd.DataFrame(
        [
            MetricsRow(
                end, end, 0, kind, 1, compute_seconds=computed, wait_seconds=waited, waited_for=peer, wait_reason=why
            )
            for kind, end, computed, waited, peer, why in rows
        ]
    )


def test_long_spans_are_kept(tmp_path):
    run = made_up_run(tmp_path / "run", workers=2)
    table, _ = pieces(run, 20.0)
    own = table[table["worker"] == 1]
    assert own["kind"].tolist() == [COMPUTE, WAIT] * 20
    assert own["begin"].tolist() == pytest.approx([t for second in range(20) for t in (second, second + 0.6)], abs=1e-6)
    assert own["end"].tolist() == pytest.approx(
        [t for second in range(20) for t in (second + 0.6, second + 1)], abs=1e-6
    )
    assert own["computing"].tolist() == [200, 0] * 20


def test_each_kind_of_span_is_a_kind_of_piece(tmp_path):
    rows = metrics(
        ("profile", 2.0, 2.0, 0.0, None, None),
        ("iteration", 6.0, 3.0, 1.0, 1, "contribution"),
        ("iteration", 9.0, 1.0, 2.0, 1, "queue"),
        ("evaluation", 9.0, None, None, None, None),
    )
    own, _ = pieces(made_up_run(tmp_path / "run", absent=True), 20.0, rows)
    working = own[own["kind"] != DOWN]
    assert working["kind"].tolist() == [PROFILE, COMPUTE, WAIT, COMPUTE, BLOCKED]
    assert working["peer"].tolist() == [-1, -1, 1, -1, 1]
    assert own[own["kind"] == DOWN][["begin", "end"]].to_numpy().tolist() == [pytest.approx([1.0, 3.0], abs=1e-6)]


def test_short_spans_are_merged_into_shares(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_CELLS", 2 * 10)
    run = large_run(tmp_path / "run", workers=2, iterations=100)
    table, data = pieces(run, 100.0)
    assert data["merged"] == 10.0
    # 100 iterations of each worker, in columns of 10 s; a wait begins in the column of its computation.
    assert len(table) == 20
    assert (table["end"] - table["begin"]).tolist() == pytest.approx([10.0] * 20, abs=1e-6)
    assert table["computing"].tolist() == [120] * 20
    assert table["kind"].tolist() == [COMPUTE] * 20
    assert table["peer"].tolist() == [1] * 10 + [0] * 10


def test_a_merged_piece_has_the_kind_that_takes_most_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_CELLS", 4)
    run = made_up_run(tmp_path / "run", workers=4)
    rows = metrics(
        ("iteration", 0.8, 0.3, 0.5, 2, "queue"),
        ("iteration", 0.9, 0.0, 0.1, 1, "contribution"),
        ("iteration", 1.1, 0.0, 0.1, 3, "contribution"),
    )
    merged, _ = pieces(run, 1.0, rows)
    assert merged["kind"].tolist() == [BLOCKED, WAIT]
    assert merged["peer"].tolist() == [2, 3]
    assert merged["computing"].tolist() == [150, 0]


def test_the_table_has_seconds_by_kind_and_the_longest_wait(tmp_path):
    _, data = pieces(large_run(tmp_path / "run", workers=2, iterations=20), 20.0)
    assert [unpacked(row).tolist() for row in data["spent"]] == [pytest.approx([8.0, 12.0, 0, 0, 0])] * 2
    assert data["waits"] == ["cloud-0/1 (8 s)", "cloud-0/0 (8 s)"]
