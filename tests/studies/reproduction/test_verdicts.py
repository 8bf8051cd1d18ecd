"""Verdicts on claims, and the pages with them."""

import math

import pandas as pd
import pytest

from dlion_sim.analysis import group_runs
from dlion_sim.errors import InputError
from dlion_sim.studies.reproduction import write_collection
from dlion_sim.studies.reproduction.claims import Claim, Experiment
from dlion_sim.studies.reproduction.verdicts import judged
from dlion_sim.studies.reproduction.writing import write_experiment
from tests.made_up import made_up_run

RATE = "workload.optimizer.learning_rate"
UNSURE = {"title": "A", "repeats": "B", "paper": "C", "sure": "D"}
BETTER = Claim(says="DLion is better", of={"system": "dlion"}, than={"system": "baseline"})
SOONER = BETTER.model_copy(update={"says": "DLion is sooner", "by": "time"})


def runs(tmp_path, curves):
    """Of each system its accuracies by seed, every 10 s."""
    return [
        made_up_run(tmp_path / f"{system}{seed}", curve, system=system, seed=seed)
        for system, of_seeds in curves.items()
        for seed, curve in enumerate(of_seeds)
    ]


def flat(*values):
    return [(0.1, value, value, value) for value in values]


@pytest.mark.parametrize(
    ("dlion", "direction"),
    [
        (flat(0.61, 0.62, 0.63), "same"),
        (flat(0.41, 0.42, 0.43), "opposite"),
        (flat(0.61, 0.42, 0.53), "no significant difference"),
        (flat(0.61), "same (one seed)"),
    ],
)
def test_the_direction_follows_from_the_significance(tmp_path, dlion, direction):
    baseline = [(0.1, each + 0.0001 * n, each, each) for n, each in enumerate((0.51, 0.52, 0.53))]
    groups = group_runs(runs(tmp_path, {"baseline": baseline, "dlion": dlion}))
    (verdict,) = judged(BETTER, groups, 0.5)
    assert verdict.direction == direction


def test_a_difference_is_of_pairs_with_its_interval(tmp_path):
    curves = {"baseline": flat(0.5, 0.6, 0.7), "dlion": flat(0.51, 0.62, 0.73)}
    (verdict,) = judged(BETTER, group_runs(runs(tmp_path, curves)), 0.5)
    assert (verdict.one, verdict.other) == (pytest.approx(0.62), pytest.approx(0.6))
    assert verdict.difference.value == pytest.approx(0.02)
    assert verdict.difference.high - 0.02 == pytest.approx(4.302653 * 0.01 / math.sqrt(3))
    assert verdict.difference.pairs == 3


def test_missed_targets_give_a_bound_without_a_test(tmp_path):
    curves = {"baseline": flat(0.3, 0.3, 0.3), "dlion": flat(0.6, 0.6, 0.6)}
    (verdict,) = judged(SOONER, group_runs(runs(tmp_path, curves)), 0.5)
    assert (verdict.difference.value, verdict.difference.bound) == (pytest.approx(3), ">")
    assert math.isnan(verdict.p)
    assert verdict.direction == "same"


@pytest.mark.parametrize(("one", "other"), [("dlion", "baseline"), ("baseline", "dlion")])
def test_a_target_missed_in_a_shorter_run_tells_nothing(tmp_path, one, other):
    """Baseline reaches it after 60 s; DLion's runs end after 20 s."""
    curves = {"baseline": [(*[0.1] * 6, 0.6)] * 3, "dlion": [(0.1, 0.1, 0.1)] * 3}
    claim = SOONER.model_copy(update={"of": {"system": one}, "than": {"system": other}})
    (verdict,) = judged(claim, group_runs(runs(tmp_path, curves)), 0.5)
    assert verdict.is_split
    assert verdict.direction == "no significant difference"


def test_partly_missed_targets_are_not_significant(tmp_path):
    curves = {"baseline": flat(0.3, 0.6, 0.3), "dlion": flat(0.6, 0.6, 0.6)}
    (verdict,) = judged(SOONER, group_runs(runs(tmp_path, curves)), 0.5)
    assert (verdict.difference.bound, verdict.direction) == (">", "no significant difference")


def test_times_that_evaluations_cannot_tell_apart_are_not_significant(tmp_path):
    """20 and 30 s of each seed, with 10 s between evaluations, may be the same time."""
    curves = {"baseline": [(0.1, 0.1, 0.1, 0.6)] * 3, "dlion": [(0.1, 0.1, 0.6, 0.6)] * 3}
    (verdict,) = judged(SOONER, group_runs(runs(tmp_path, curves)), 0.5)
    assert verdict.difference.value == pytest.approx(1.5)
    assert verdict.direction == "no significant difference"


def test_times_further_apart_than_evaluations_are_significant(tmp_path):
    curves = {"baseline": [(*[0.1] * 8, 0.6)] * 3, "dlion": [(0.1, 0.1, 0.1, *[0.6] * 6)] * 3}
    (verdict,) = judged(SOONER, group_runs(runs(tmp_path, curves)), 0.5)
    assert verdict.difference.low > 1
    assert verdict.direction == "same"


def test_runs_of_both_regimes_of_rates_count_once(tmp_path):
    """Baseline's and DLion's own rates are the one for all; Gaia's is another."""
    rates = {"one": 0.1, "own": {"baseline": 0.1, "dlion": 0.1, "gaia": 0.05}}
    claims = [BETTER, BETTER.model_copy(update={"says": "DLion beats Gaia", "than": {"system": "gaia"}})]
    experiment = Experiment(**UNSURE, rates=rates, target=0.5, claims=claims)
    made = [
        made_up_run(tmp_path / f"{system}{rate}{seed}", curve, system=system, seed=seed, point={RATE: rate}, extra=rate)
        for system, at in {"baseline": ["0.1"], "dlion": ["0.1"], "gaia": ["0.1", "0.05"]}.items()
        for rate in at
        for seed, curve in enumerate(flat(0.6, 0.61, 0.63) if system == "dlion" else flat(0.3, 0.31, 0.32))
    ]
    verdicts = write_experiment("E1", experiment, made, tmp_path / "results" / "E1", "dlion reproduce E1")
    assert len(verdicts) == 4
    write_collection({"E1": experiment}, tmp_path / "results", "dlion reproduce NAME")
    assert "| 3 same |" in (tmp_path / "results" / "README.md").read_text()


def test_bytes_are_compared_by_their_ratio(tmp_path):
    claim = BETTER.model_copy(update={"by": "bytes"})
    curves = {"baseline": flat(0.5, 0.5, 0.5), "dlion": flat(0.5, 0.5, 0.5)}
    (verdict,) = judged(claim, group_runs(runs(tmp_path, curves)), 0.5)
    assert verdict.difference.value == pytest.approx(verdict.other / verdict.one)


def test_deviation_is_the_mean_over_all_evaluations_but_the_first(tmp_path):
    claim = BETTER.model_copy(update={"by": "deviation"})
    curves = {"baseline": [(0.5, 0.5, 0.5)], "dlion": [(0.5, 0.005, 0.5)]}
    (verdict,) = judged(claim, group_runs(runs(tmp_path, curves)), 0.5)
    assert (verdict.one, verdict.other) == (pytest.approx(0.0075), pytest.approx(0.01))
    assert verdict.difference.value == pytest.approx(0.0025)


def test_each_environment_has_a_verdict(tmp_path):
    made = []
    for name, value in (("near", 0.6), ("far", 0.4)):
        for system, curve in (("baseline", flat(0.5)[0]), ("dlion", flat(value)[0])):
            made.append(made_up_run(tmp_path / f"{name}-{system}", curve, system=system, scenario=name))
    verdicts = judged(BETTER, group_runs(made), 0.5)
    assert {verdict.where: verdict.direction for verdict in verdicts} == {
        "near": "same (one seed)",
        "far": "opposite (one seed)",
    }


def test_a_claim_on_missing_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="no pair of runs fits the claim 'DLion is better'"):
        judged(BETTER, group_runs(runs(tmp_path, {"dlion": flat(0.5)})), 0.5)


def test_closer_figures_are_of_one_run(tmp_path):
    made = runs(tmp_path, {"baseline": flat(0.3, 0.31), "dlion": flat(0.6, 0.61)})
    experiment = Experiment(
        title="A", repeats="D", paper="B", sure="C", closer={"run": "dlion1", "figures": ["batch_sizes"]}
    )
    write_experiment("E1", experiment, made, tmp_path / "E1", "dlion reproduce E1")
    assert "(batch_sizes.png)" in (tmp_path / "E1" / "README.md").read_text()
    assert (tmp_path / "E1" / "batch_sizes.png").is_file()
    other = Experiment(**UNSURE, closer={"run": "dlion2", "figures": ["links"]})
    with pytest.raises(InputError, match=r"closer\.run: no run is named 'dlion2'; allowed: baseline0, baseline1"):
        write_experiment("E2", other, made, tmp_path / "E2", "dlion reproduce E2")
    assert not (tmp_path / "E2").exists()


def test_a_common_suffix_of_scenario_names_is_omitted(tmp_path):
    experiment = Experiment(**UNSURE, target=0.5, claims=[BETTER])
    made = [
        made_up_run(tmp_path / f"{name}-{system}", [0.1, 0.5], system=system, scenario=f"{name}, charged as others")
        for name in ("near", "far")
        for system in ("baseline", "dlion")
    ]
    verdicts = write_experiment("E1", experiment, made, tmp_path / "E1", "dlion reproduce E1")
    assert {verdict.where for verdict in verdicts} == {"near", "far"}
    assert "charged" not in (tmp_path / "E1" / "README.md").read_text()


def test_pages_and_the_collection_have_all_results(tmp_path):
    experiment = Experiment(
        title="A | test",
        repeats="figure 4",
        paper="twice",
        sure="not at all",
        stand_in="A table of numbers.",
        target=0.5,
        claims=[BETTER, SOONER],
        found="So it is.",
    )
    made = runs(tmp_path, {"baseline": flat(0.3, 0.31, 0.32), "dlion": flat(0.6, 0.61, 0.63)})
    verdicts = write_experiment("E1", experiment, made, tmp_path / "results" / "E1", "dlion reproduce E1")
    assert [verdict.direction for verdict in verdicts] == ["same", "same"]
    page = (tmp_path / "results" / "E1" / "README.md").read_text()
    for told in (
        "# E1: A | test",
        "twice",
        "figure 4",
        "**Stand-in**: A table of numbers.",
        "DLion is better",
        "30.",
        "| > 30",
        "So it is.",
        "dlion reproduce E1",
        " 31.77], +98%: same",
    ):
        assert told in page, told
    table = (tmp_path / "results" / "E1" / "table.csv").read_text().splitlines()
    assert "LAN bytes,LAN bytes to 50 %" in table[0]
    assert table[0].startswith("scenario,system")
    assert "| scenario" not in page
    names = {file.name for file in (tmp_path / "results" / "E1").iterdir()}
    assert names == {"README.md", "table.csv", "runs.csv", "verdicts.csv", "figure.png", "figure.svg"}
    each = pd.read_csv(tmp_path / "results" / "E1" / "runs.csv")
    assert list(each["system"]) == ["baseline"] * 3 + ["dlion"] * 3
    assert list(each["seed"]) == [0, 1, 2] * 2
    assert list(each["accuracy (%)"]) == [30, 31, 32, 60, 61, 63]
    assert each["time to 50 % (s)"].isna().tolist() == [True] * 3 + [False] * 3
    write_collection({"E1": experiment, "E2": experiment}, tmp_path / "results", "dlion reproduce NAME")
    collection = (tmp_path / "results" / "README.md").read_text()
    assert "[E1](E1/README.md)" in collection
    assert "2 same" in collection
    assert "E2" not in collection
    assert "numbers" not in collection
    assert "A \\| test" in collection


def test_a_run_without_evaluations_has_no_accuracy(tmp_path):
    made = runs(tmp_path, {"baseline": [()], "dlion": flat(0.6)})
    write_experiment("E1", Experiment(**UNSURE, target=0.5), made, tmp_path / "E1", "dlion reproduce E1")
    each = pd.read_csv(tmp_path / "E1" / "runs.csv").set_index("system")
    assert each["accuracy (%)"].isna().to_dict() == {"baseline": True, "dlion": False}
    assert each["time to 50 % (s)"].to_dict() == pytest.approx({"baseline": math.nan, "dlion": 10}, nan_ok=True)
