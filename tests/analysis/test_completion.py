"""Completion times and losses, against sums by hand."""

import math

import numpy as np
import pytest

from dlion_sim.analysis.completion import by_kind, by_part, completions, percentiles
from dlion_sim.results import PartsRow, Run, RunWriter, TransfersRow


def run_of(folder, transfers=(), parts=()):
    writer = RunWriter.create(folder, scenario_yaml="", manifest={"workers": ["a/0", "a/1"]})
    for row in transfers:
        writer.append(row)
    for row in parts:
        writer.append(row)
    writer.finish({"status": "completed"})
    return Run.open(folder)


def sent(begin, end, kind="contribution", channel="data", size=100, lost=None, resent=None, saved=None, delivered=None):
    return TransfersRow(begin, end, 0, 1, channel, kind, size, lost, resent, saved, delivered)


def part(variable, large, lost, seconds, stage="push"):
    return PartsRow(0.0, 0, 1, "contribution", stage, variable, large, 100, lost, seconds)


def test_messages_complete_when_delivered_or_else_sent(tmp_path):
    rows = [sent(1.0, 3.0), sent(2.0, 3.0, delivered=6.0), sent(4.0, None), sent(0.0, 1.0, "weights", "weights")]
    assert completions(run_of(tmp_path / "run", rows))["seconds"].tolist() == [2.0, 4.0]


def test_shares_are_of_all_bytes_of_a_kind(tmp_path):
    rows = [
        sent(0.0, 1.0, size=90, lost=20, resent=0, saved=10),
        sent(0.0, 3.0, size=100, lost=0, resent=250, saved=0),
        sent(0.0, 5.0, "parameters", size=50, lost=0, resent=0, saved=0),
        sent(0.0, 9.0, "swap"),  # no packets
        sent(0.0, None, lost=None),
    ]
    table = by_kind(run_of(tmp_path / "run", rows))
    assert table.index.tolist() == ["contribution", "parameters"]
    contribution = table.loc["contribution"]
    assert contribution[["messages", "lost", "resent", "saved"]].tolist() == [2, 0.1, 1.25, 0.05]
    assert contribution[["mean", "p50", "p99"]].tolist() == [2.0, 2.0, pytest.approx(2.98)]
    assert by_kind(run_of(tmp_path / "none", rows[3:4])).empty


def test_parts_are_by_stage_variable_and_class(tmp_path):
    first = run_of(tmp_path / "first", parts=[part(0, True, 0, 1.0), part(0, False, 50, 2.0), part(1, True, 100, None)])
    second = run_of(tmp_path / "second", parts=[part(0, True, 10, 3.0), part(0, True, 20, 5.0, "pull")])
    table = by_part([first, second]).set_index(["stage", "variable", "packets"])
    assert table["lost"].to_dict() == {
        ("pull", 0, "large"): 0.2,
        ("push", 0, "large"): 0.05,
        ("push", 0, "small"): 0.5,
        ("push", 1, "large"): 1.0,
    }
    assert table.loc[("push", 0, "large"), "mean"] == 2.0
    assert math.isnan(table.loc[("push", 1, "large"), "p99"])
    assert by_part([run_of(tmp_path / "none")]).empty


def test_percentiles_are_numpys():
    seconds = np.random.default_rng(1).exponential(size=1000)
    told = percentiles(seconds)
    assert list(told.values()) == [seconds.mean(), np.percentile(seconds, 50), np.percentile(seconds, 99)]
    assert all(map(math.isnan, percentiles([]).values()))
