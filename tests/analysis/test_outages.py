"""Outages of participants and paths, from run folders."""

import math
from dataclasses import replace

import pytest

from dlion_sim.analysis.outages import common_outages, path_outages, process_outages, training_outages
from dlion_sim.results import MembershipRow, Run, RunWriter
from tests.made_up import made_up_run

EAST_WEST = {"sender": "east", "receiver": "west", "begin": 5.0, "end": 7.0}


def run_of(folder, *rows, seconds=20.0, **manifest):
    writer = RunWriter.create(folder, scenario_yaml="", manifest={"workers": ["east/0", "west/0"], **manifest})
    for row in rows:
        writer.append(MembershipRow(*row))
    writer.finish({"status": "completed", "virtual_seconds": seconds})
    return Run.open(folder)


def test_an_outage_ends_with_the_next_process(tmp_path):
    assert process_outages(made_up_run(tmp_path / "a", absent=True)) == {0: [(1.0, 3.0)]}
    assert process_outages(made_up_run(tmp_path / "b")) == {}


def test_leaves_late_joins_and_endless_outages_count(tmp_path):
    rows = [(0.0, 1, 0, "down"), (2.0, 1, 0, "up"), (4.0, 0, 0, "noticed"), (5.0, 0, 0, "left"), (6.0, 0, 1, "up")]
    run = run_of(tmp_path / "run", *rows, (9.0, 0, 1, "down"))
    assert process_outages(run) == {0: [(5.0, 6.0), (9.0, math.inf)], 1: [(0.0, 2.0)]}


def test_a_training_outage_ends_with_the_state_or_a_restart(tmp_path):
    rows = [(1.0, 1, 0, "down"), (2.0, 1, 1, "up"), (2.5, 1, 1, "down"), (3.0, 1, 2, "up"), (3.5, 1, 2, "joined")]
    run = run_of(tmp_path / "run", *rows, (4.0, 0, 0, "down"), (5.0, 0, 1, "up"), (6.0, 0, 1, "begins_anew"))
    assert training_outages(run) == {0: [(4.0, 6.0)], 1: [(1.0, 3.5)]}


def test_an_immediate_restart_is_no_outage(tmp_path):
    run = run_of(tmp_path / "run", (3.0, 0, 0, "down"), (3.0, 0, 1, "up"), (5.0, 1, 1, "up"))
    assert process_outages(run) == {}


def test_path_outages_are_the_scenarios_except_in_live_runs(tmp_path):
    told = [EAST_WEST, {**EAST_WEST, "begin": 15.0, "end": None}]
    assert path_outages(run_of(tmp_path / "a", paths_down=told)) == {("east", "west"): [(5.0, 7.0), (15.0, math.inf)]}
    assert path_outages(run_of(tmp_path / "b", paths_down=told, way="live")) == {}
    assert path_outages(run_of(tmp_path / "c")) == {}


@pytest.mark.parametrize(
    ("rows", "seconds", "common"),
    [
        ([(1.0, 1, 0, "down"), (6.0, 1, 1, "up")], 20.0, [(2.0, 4.0), (5.0, 6.0)]),
        ([(1.0, 1, 0, "down")], 20.0, [(2.0, 4.0), (5.0, 7.0)]),
        ([], 20.0, []),
        ([], 6.0, [(6.0, 7.0)]),
    ],
    ids=["both", "for_good", "nobody", "over_before"],
)
def test_common_outages_are_intersections(tmp_path, rows, seconds, common):
    away = [(2.0, 0, 0, "down"), (3.0, 1, 0, "left"), (3.5, 0, 1, "up"), (4.0, 1, 1, "up")]
    run = run_of(tmp_path / "a", *away, paths_down=[EAST_WEST])
    assert common_outages([run]) == [(2.0, 4.0), (5.0, 7.0)]
    assert common_outages([run, run_of(tmp_path / "b", *rows, seconds=seconds)]) == common


def test_a_run_without_a_summary_has_no_end(tmp_path):
    run = made_up_run(tmp_path / "a", absent=True)
    assert common_outages([run, replace(run, summary=None)]) == [(1.0, 3.0)]
