"""The shipped experiments: their sweeps have the runs that claims name."""

from collections import Counter, defaultdict

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario.shipped import REPRODUCTION
from dlion_sim.studies.reproduction import claims, points_of
from dlion_sim.studies.reproduction.claims import Comparison, experiments

EXPERIMENTS = experiments()


def test_all_experiments_are_there():
    ours = ["held_out", "dynamic_causes", "skewed_causes", "which_system", "cipher_causes"]
    ours += ["cipher", "cipher_sys_b", "cipher_homo_a", "cipher_long", "mobilenet"]
    assert list(EXPERIMENTS) == [*(f"E{number}" for number in range(17)), *ours]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_name_runs_of_the_sweep(name):
    points = points_of(name, short=False)
    sides = [side for claim in EXPERIMENTS[name].judged for side in (claim.of, claim.than)]
    values = {axis.rsplit(".", 1)[-1]: {point.labels[axis] for point in points} for axis in points[0].labels}
    values["scenario"] = {point.base.label for point in points}
    for side in sides:
        for axis, value in side.items():
            assert value in values[axis], f"{axis}: {value}"
    closer = EXPERIMENTS[name].closer
    assert closer is None or closer.run in {point.name for point in points}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_point_has_three_seeds_and_is_valid(name):
    points = points_of(name, short=False)
    seeds = Counter(tuple(value for axis, value in point.labels.items() if axis != "seed") for point in points)
    assert set(seeds.values()) == {3}
    one_of_each = {point.labels["system"]: point for point in points}
    for point in one_of_each.values():
        point.scenario()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_stand_in_is_named_where_ciphers_cost_is_charged(name):
    costs = {point.labels.get("workload.cost_as") for point in points_of(name, short=False)}
    assert ("Cipher's time and bytes are charged" in EXPERIMENTS[name].stand_in) == ("cipher" in costs)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_short_form_is_valid(name):
    whole, short = points_of(name, short=False), points_of(name, short=True)
    assert len(whole) == 3 * len(short)
    assert [point.name for point in short] == [point.name for point in whole if point.labels["seed"] == "0"]
    for point in {point.base.label: point for point in short}.values():
        scenario = point.scenario()
        assert scenario.workload.evaluate_every <= scenario.duration / 6
        assert scenario.duration <= 180


@pytest.mark.parametrize("name", [name for name, each in EXPERIMENTS.items() if each.rates is not None])
def test_systems_have_exactly_the_rates_of_both_regimes(name):
    rates = EXPERIMENTS[name].rates
    found = defaultdict(set)
    for point in points_of(name, short=False):
        found[point.labels["system"]].add(float(point.labels["workload.optimizer.learning_rate"]))
    assert found == {system: {own, rates.one or own} for system, own in rates.own.items()}


@pytest.mark.parametrize("name", sorted(file.stem for file in REPRODUCTION.glob("*.yaml") if file.stem != "claims"))
def test_every_sweep_is_valid(name):
    for point in points_of(name, short=False):
        assert point.scenario().seed == int(point.labels["seed"])


def test_comparisons_are_claims_on_all_pairs():
    compared = Comparison(of=["dlion"], than=["ako", "gaia"], by="time", paper="2 x")
    assert [(claim.says, claim.of, claim.than, claim.by, claim.paper) for claim in compared.claims] == [
        ("dlion reaches the target before ako", {"system": "dlion"}, {"system": "ako"}, "time", "2 x"),
        ("dlion reaches the target before gaia", {"system": "dlion"}, {"system": "gaia"}, "time", "2 x"),
    ]


def test_an_invalid_claim_is_reported_with_its_path(tmp_path, monkeypatch):
    file = tmp_path / "claims.yaml"
    file.write_text(
        "E1: {title: a, repeats: r, paper: b, sure: c, "
        "claims: [{says: d, of: {system: x}, than: {system: y}, by: luck}]}"
    )
    monkeypatch.setattr(claims, "CLAIMS", file)
    with pytest.raises(InputError, match=r"claims.yaml: E1.claims.0.by: 'luck' is unknown; allowed: 'accuracy'"):
        experiments()
