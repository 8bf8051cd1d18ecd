"""Comparisons of groups of runs."""

import math

import numpy as np
import pytest
from scipy import stats

from dlion_sim.analysis import common_target, comparison, group_runs, time_to_target
from dlion_sim.analysis.groups import note
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
    assert table["last"].tolist() == pytest.approx([0.5, 0.7, 0.1])
    assert table["final"].tolist() == pytest.approx([1 / 3, (2 + 1.5) / 6, 0.1])
    assert table["time"].tolist() == pytest.approx([30, 15, 30])
    # DLion's first seed had it at its first evaluation after the beginning.
    assert table["time_bound"].tolist() == ["", "<=", ">"]
    assert math.isnan(table["time_high"][1])
    assert table["reached"].tolist() == [1, 2, 0]
    # Of DLion's seeds Baseline has but the first.
    assert table["speedup"].tolist() == pytest.approx([1, 3, 1])
    assert table["speedup_bound"].tolist() == ["", "~", "<"]
    assert table["pairs"].tolist() == [0, 1, 1]
    assert table["bytes_sent"][1] == 6e6


def test_a_seed_that_misses_the_target_counts(tmp_path):
    """The others alone would flatter a system that does not get there every time."""
    accuracies = [(0.1, 0.6, 0.6, 0.6, 0.6), (0.1, 0.1, 0.6, 0.6, 0.6), (0.1, 0.1, 0.1, 0.1, 0.1)]
    runs = [made_up_run(tmp_path / f"d{seed}", each, seed=seed) for seed, each in enumerate(accuracies)]
    runs += [made_up_run(tmp_path / f"b{seed}", (0.1, 0.1, 0.6), system="baseline", seed=seed) for seed in range(3)]
    table = comparison(group_runs(runs), 0.6)
    _, row = table.to_dict("records")
    assert (row["time"], row["time_bound"], row["reached"], row["seeds"]) == (pytest.approx(70 / 3), ">", 2, 3)
    assert row["waited"] == 40
    assert row["speedup"] == pytest.approx((2 * 1 * 0.5) ** (1 / 3))
    assert (row["speedup_bound"], row["pairs"]) == ("<", 3)
    assert table["speedup_bound"][0] == ""


def test_a_speed_up_has_an_interval_over_its_pairs(tmp_path):
    runs = []
    for seed, (slow, fast) in enumerate([(8, 2), (8, 4), (4, 2)]):
        for system, place in (("baseline", slow), ("dlion", fast)):
            accuracies = [0.1] * place + [0.6] * (9 - place)
            runs.append(made_up_run(tmp_path / f"{system}{seed}", accuracies, system=system, seed=seed))
    _, row = comparison(group_runs(runs), 0.6).to_dict("records")
    logs = np.log([4, 2, 2])
    half = 4.303 * logs.std(ddof=1) / math.sqrt(3)
    assert row["speedup"] == pytest.approx(math.exp(logs.mean()))
    assert row["speedup_low"] == pytest.approx(math.exp(logs.mean() - half), rel=1e-3)
    assert row["speedup_high"] == pytest.approx(math.exp(logs.mean() + half), rel=1e-3)
    assert row["pairs"] == 3


def test_the_final_metric_is_the_mean_of_the_last_evaluations(tmp_path):
    rising = made_up_run(tmp_path / "long", np.linspace(0, 1, 41).tolist(), every=1.0)
    short = made_up_run(tmp_path / "short", (0.1, 0.2, 0.6), seed=1)
    table = comparison(group_runs([rising]), 0.5)
    # Of 40 s those from 36 s on.
    assert table["final"][0] == pytest.approx(38 / 40)
    assert table["evaluations_least"][0] == 5
    assert table["last"][0] == pytest.approx(1)
    assert comparison(group_runs([short]), 0.5)["final"][0] == pytest.approx(0.4)


def test_the_final_metric_of_older_summaries_is_computed(tmp_path):
    run = made_up_run(tmp_path / "run", (0.1, 0.2, 0.4, 0.6))
    told = comparison(group_runs([run]), 0.5)["final"][0]
    del run.summary["final_accuracy"], run.summary["exchanges"], run.summary["system_label"], run.manifest["replaced"]
    table = comparison(group_runs([run]), 0.5)
    assert table["final"][0] == pytest.approx(told) == pytest.approx(0.4)
    assert table["note"][0] == ""


def test_p_values_are_of_pairs_and_corrected(tmp_path):
    noise = (0.0, 0.05, 0.02)
    tops = {
        "baseline": [0.5 + each for each in noise],
        "dlion": [0.7 + each + 0.001 * seed for seed, each in enumerate(noise)],
        "ako": [0.5, 0.52, 0.53],
    }
    runs = [
        made_up_run(tmp_path / f"{system}{seed}", [0.1, top, top, top], system=system, seed=seed)
        for system, each in tops.items()
        for seed, top in enumerate(each)
    ]
    table = comparison(group_runs(runs), 0.5)
    ako, dlion = (stats.ttest_rel(tops[system], tops["baseline"]).pvalue for system in ("ako", "dlion"))
    assert table["p"].tolist() == pytest.approx([math.nan, dlion, ako], nan_ok=True)
    assert table["p_holm"].tolist() == pytest.approx([math.nan, 2 * dlion, ako], nan_ok=True)
    assert table["reference"].tolist() == [0, 0, 0]
    alone = [run for run in runs if run.manifest["seed"] == 0]
    assert comparison(group_runs(alone), 0.5)["p"].isna().all()


def test_without_a_baseline_the_first_group_is_the_reference(tmp_path):
    runs = [
        made_up_run(tmp_path / f"{system}{seed}", system=system, seed=seed)
        for system in ("ako", "hop")
        for seed in (0, 1)
    ]
    table = comparison(group_runs(runs), 0.5)
    assert table["p"].tolist() == pytest.approx([math.nan, 1], nan_ok=True)
    assert table["speedup"].isna().all()


def test_a_repeated_simulation_is_one_sample(tmp_path):
    twice = [made_up_run(tmp_path / name, seed=3) for name in "ab"]
    table = comparison(group_runs(twice), 0.5)
    assert (table["completed"][0], table["seeds"][0]) == (2, 1)
    assert math.isnan(table["final_low"][0])
    live = [made_up_run(tmp_path / f"live-{name}", seed=3, way="live") for name in "ab"]
    assert comparison(group_runs(live), 0.5)["seeds"][0] == 2


def test_a_baseline_with_a_replaced_choice_is_no_reference(tmp_path):
    other = {"replaced": {"exchange": "gossip:Gossip"}}
    runs = [
        made_up_run(tmp_path / "gossip", (0.1, 0.6, 0.6, 0.6), system="baseline", **other),
        made_up_run(tmp_path / "plain", (0.1, 0.1, 0.1, 0.6), system="baseline"),
        made_up_run(tmp_path / "dlion", (0.1, 0.1, 0.6, 0.6)),
    ]
    groups = group_runs(runs)
    assert [group.labels["system"] for group in groups] == ["baseline", "baseline, exchange gossip:Gossip", "dlion"]
    assert comparison(groups, 0.6)["speedup"].tolist() == pytest.approx([1, 3, 1.5])
    # By itself it is not 1.00 times as fast as itself.
    assert comparison(group_runs(runs[:1]), 0.6)["speedup"].isna().all()
    # Nor in a sweep that calls it so.
    so_called = made_up_run(tmp_path / "sweep", system="baseline", point={"system": "baseline"}, **other)
    assert group_runs([so_called])[0].labels["system"] == "baseline, exchange gossip:Gossip"
    assert not group_runs([so_called])[0].is_reference


def test_several_baselines_are_no_reference(tmp_path):
    runs = [made_up_run(tmp_path / f"b{size}", system="baseline", extra=f"batch_size: {size}") for size in (8, 16)]
    table = comparison(group_runs([*runs, made_up_run(tmp_path / "d")]), 0.5)
    assert table["speedup"].isna().all()
    assert set(table["reference"]) == {-1}


def test_runs_without_an_exchange_and_diverged_runs_are_noted(tmp_path):
    runs = [
        made_up_run(tmp_path / "ako", system="ako", diverged=True),
        made_up_run(tmp_path / "alone", system="gaia", workers=1, exchanging=False),
        made_up_run(tmp_path / "dlion0", seed=0),
        made_up_run(tmp_path / "dlion1", seed=1, diverged=True),
        made_up_run(tmp_path / "hop", system="hop", exchanging=False, diverged=True),
        made_up_run(tmp_path / "diloco", system="diloco", exchanging=False),
    ]
    notes = {group.labels["system"]: note([group]) for group in group_runs(runs)}
    assert notes == {
        "ako": "diverged",
        "gaia": "",
        "dlion": "in part diverged",
        "hop": "no exchange, diverged",
        "diloco": "no exchange",
    }


def test_a_target_without_a_summary_is_found_in_the_metrics(groups):
    run = groups[1].runs[0]
    assert time_to_target(run, 0.55) == 20
    assert math.isnan(time_to_target(run, 0.85))


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


def test_groups_of_other_clusters_are_not_compared(tmp_path):
    """Though neither is an axis of a sweep, and both scenarios have the same name."""
    fast, slow = (f"cluster:\n  clouds:\n  - name: east\n  wan:\n    bandwidth: {rate} Mbps\n" for rate in (100, 1))
    runs = [
        made_up_run(tmp_path / "b", (0.1, 0.2, 0.6), system="baseline", extra=slow),
        made_up_run(tmp_path / "d", (0.1, 0.6), extra=slow),
        made_up_run(tmp_path / "a", (0.1, 0.6), system="ako", extra=fast),
    ]
    table = comparison(group_runs(runs), 0.6)
    assert table["speedup"].tolist()[:2] == [1, 2]
    assert math.isnan(table["speedup"][2])
    assert table["reference"].tolist() == [0, 0, 2]


def test_groups_of_other_evaluation_sets_are_not_compared(tmp_path):
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


def test_outages_are_compared_as_means(tmp_path):
    runs = [made_up_run(tmp_path / f"d{seed}", seed=seed, absent=seed < 1) for seed in range(2)]
    table = comparison(group_runs([*runs, made_up_run(tmp_path / "b", system="baseline")]), 0.5)
    always_there, away = table[["up", "goodput", "work_lost", "state_bytes", "to_join"]].to_numpy().tolist()
    # Without outages nothing is lost: all of the 100 samples in 20 s are useful.
    assert away == pytest.approx([(0.95 + 1) / 2, (75 + 100) / 2 / 20, 0.125, 2000, 0.5])
    assert always_there == pytest.approx([1.0, 5.0, 0.0, 0.0, math.nan], nan_ok=True)
    (alone,) = comparison(group_runs([made_up_run(tmp_path / "c", system="baseline")]), 0.5).to_dict("records")
    assert math.isnan(alone["up"])


def test_incomplete_older_summaries_are_compared(tmp_path):
    run = made_up_run(tmp_path / "run", absent=True)
    run.summary["availability"] = {"up": [0.5, 1.0], "lost_seconds": 2.0}
    (row,) = comparison(group_runs([run]), 0.5).to_dict("records")
    assert (row["up"], row["work_lost"]) == (0.75, 2.0)
    assert all(math.isnan(row[name]) for name in ("goodput", "state_bytes", "to_join"))


def test_wan_bytes_are_of_the_run_and_until_the_target(tmp_path):
    """Of the three links one goes to the other micro-cloud and one comes back, each with 1 MB in 10 s."""
    clouds = ("east", "east", "west")
    runs = [
        made_up_run(tmp_path / "b", (0.1, 0.2, 0.3, 0.5), system="baseline", workers=3, clouds=clouds),
        made_up_run(tmp_path / "d", (0.1, 0.5, 0.7, 0.8), workers=3, clouds=clouds),
        made_up_run(tmp_path / "g", (0.1, 0.1, 0.1, 0.1), system="gaia", workers=3, clouds=clouds),
    ]
    table = comparison(group_runs(runs), 0.5)
    assert table["wan_bytes"].tolist() == [6e6, 6e6, 6e6]
    assert table["wan_bytes_to_target"].tolist() == pytest.approx([6e6, 2e6, math.nan], nan_ok=True)
    assert table["bytes_sent_to_target"].tolist() == pytest.approx([9e6, 3e6, math.nan], nan_ok=True)
