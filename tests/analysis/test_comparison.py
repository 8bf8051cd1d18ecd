"""What groups of runs come to."""

import math

import pytest

from dlion_sim.analysis import common_target, comparison, group_runs, time_to_accuracy
from dlion_sim.errors import InputError
from tests.made_up import made_up_run


@pytest.fixture
def groups(tmp_path):
    """Baseline reaches 50 % at 30 s, DLion at 10 s and 20 s; Gaia never does."""
    return group_runs(
        [
            made_up_run(tmp_path / "b", (0.1, 0.2, 0.3, 0.5), system="baseline"),
            made_up_run(tmp_path / "d0", (0.1, 0.5, 0.7, 0.8), seed=0),
            made_up_run(tmp_path / "d1", (0.1, 0.3, 0.6, 0.6), seed=1),
            made_up_run(tmp_path / "d2", (0.1, 0.9), seed=2, status="interrupted"),
            made_up_run(tmp_path / "g", (0.1, 0.1, 0.1, 0.1), system="gaia"),
        ]
    )


def test_means_over_seeds_and_speed_ups_over_baseline(groups):
    table = comparison(groups, 0.5)
    assert table["runs"].tolist() == [1, 3, 1]
    assert table["completed"].tolist() == [1, 2, 1]
    assert table["accuracy"].tolist() == pytest.approx([0.5, 0.7, 0.1])
    assert table["accuracy_std"][1] == pytest.approx(0.2 / math.sqrt(2))
    assert table["time"].tolist()[:2] == pytest.approx([30, 15])
    assert table["reached"].tolist() == [1, 2, 0]
    assert table["speedup"].tolist()[:2] == pytest.approx([1, 2])
    assert table.loc[2, ["time", "time_std", "speedup"]].isna().all()
    assert table["bytes_sent"][1] == 6e6


def test_a_target_that_no_summary_tells_is_looked_up_in_the_metrics(groups):
    run = groups[1].runs[0]
    assert time_to_accuracy(run, 0.55) == 20
    assert math.isnan(time_to_accuracy(run, 0.85))


def test_the_common_target_is_one_that_half_of_the_runs_reached(groups):
    assert common_target(groups) == 0.6
    assert common_target(groups[2:]) == 0.1


def test_speed_ups_are_within_an_environment(tmp_path):
    groups = group_runs(
        [
            made_up_run(
                tmp_path / f"{system}-{bandwidth}",
                accuracies,
                system=system,
                extra=bandwidth,
                point={"cluster.wan.bandwidth": bandwidth, "system": system},
            )
            for system, bandwidth, accuracies in [
                ("baseline", "1 Mbps", (0.1, 0.2, 0.3, 0.6)),
                ("dlion", "1 Mbps", (0.1, 0.6)),
                ("baseline", "9 Mbps", (0.1, 0.3, 0.6)),
                ("dlion", "9 Mbps", (0.1, 0.6)),
            ]
        ]
    )
    assert comparison(groups, 0.6)["speedup"].tolist() == [1, 3, 1, 2]


def test_speed_ups_are_of_runs_that_were_evaluated_on_the_same_samples(tmp_path):
    runs = [
        made_up_run(tmp_path / "b", (0.1, 0.2, 0.6), system="baseline"),
        made_up_run(tmp_path / "d", (0.1, 0.6)),
        made_up_run(tmp_path / "v", (0.1, 0.6), extra="validation: 0.1\n", evaluated_on="validation"),
    ]
    table = comparison(group_runs(runs), 0.6)
    assert table["time"].tolist() == [20, 10, 10]
    assert table["speedup"].tolist()[:2] == [1, 2]
    assert math.isnan(table["speedup"][2])


def test_without_a_completed_run_there_is_nothing_to_compare(tmp_path):
    groups = group_runs([made_up_run(tmp_path / "a", status="failed")])
    with pytest.raises(InputError, match="none of the runs is completed"):
        common_target(groups)
    assert comparison(groups, 0.5)["completed"].tolist() == [0]
