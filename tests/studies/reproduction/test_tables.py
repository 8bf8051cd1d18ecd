"""Published tables: formulas, simulations and verdicts on their numbers."""

import math

import pandas as pd
import pytest

from dlion_sim import simulate
from dlion_sim.scenario import dump
from dlion_sim.studies.reproduction import points_of, write_results
from dlion_sim.studies.reproduction.tables import TABLES, covenant, goodput, halos, moshpit, utilization
from dlion_sim.studies.reproduction.tables.table import Check, by_labels


@pytest.fixture
def run_of(tmp_path):
    """The run of a table's point, with some values set."""

    def run_of(table, label, **values):
        (point,) = (each for each in points_of(table, short=False) if each.name == label)
        scenario = point.scenario().model_copy(update=values)
        file = tmp_path / f"{label}.yaml"
        file.write_text(dump(scenario))
        return simulate(file, tmp_path / "runs" / label)

    return run_of


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.has_runs])
def test_every_point_is_valid(name):
    for point in points_of(name, short=False):
        point.scenario()


@pytest.mark.parametrize(
    ("found", "within", "equal"),
    [(1.03, 1.03, True), (1 / 1.03, 1.03, True), (1.04, 1.03, False), (0.0, 2, False), (math.inf, 2, False)],
)
def test_a_number_is_as_published_within_a_ratio(found, within, equal):
    assert Check("a", "b", 100, 100 * found, within).is_as_published == equal


def test_moshpit_is_within_two_standard_errors():
    findings = TABLES["moshpit"].compute([])
    assert len(findings.checks) == 15
    assert all(check.is_as_published for check in findings.checks)
    assert not Check("Moshpit", "", 8.2, moshpit.PUBLISHED[512, 0.01][2] + 1, 1.05).is_as_published


def test_a_group_that_nobody_fails_in_is_averaged_exactly():
    assert moshpit.iterations(moshpit.one_group, 512, 0.0, seed=0) == 1
    assert moshpit.iterations(moshpit.one_group, 512, 1.0, seed=0) == moshpit.MOST


def test_goodput_follows_from_two_constants():
    assert goodput.goodput(1) == pytest.approx(goodput.PUBLISHED[1])
    assert goodput.goodput(16) == pytest.approx(goodput.PUBLISHED[16], abs=0.01)
    for point in points_of("goodput", short=False):
        # As often as fitted, whatever the number of learners: N f d = learners * down / up.
        learners = int(point.labels["cluster.clouds.0.workers.0.count"])
        (fails,) = point.scenario().availability.workers.values()
        assert learners * fails.down / fails.up == pytest.approx(goodput.STALLED * goodput.LONGER)


def test_simulated_goodput_is_near(run_of):
    assert goodput.useful(run_of("goodput", "8-quorum2-seed0", duration=900.0)) == pytest.approx(
        goodput.goodput(8), abs=0.1
    )


def test_halos_by_its_rules():
    hours, dropped = halos.halos()
    assert (halos.asynchronous(), hours) == pytest.approx((1.14, 0.68), rel=0.03)
    assert dropped == pytest.approx([0.002, 0.31, 0.21, 0.57], abs=0.005)
    slowest = [halos.diloco(dynamic=dynamic, bandwidth=0.117) for dynamic in (False, True)]
    assert slowest == pytest.approx([5.37, 3.74], rel=0.03)


def test_halos_simulated_in_part_has_the_pace_of_its_rules(run_of):
    found = halos.hours_of(run_of("halos", "HALoS-0s", duration=60.0))
    assert found == pytest.approx(halos.halos()[0], rel=0.1)


def test_layer_by_layer_repeats_table_4():
    simulated = lambda method, gbps: utilization.layer_by_layer(method, 1e9, 24, 0.118, gbps)  # noqa: E731
    apart = []
    for method, published in utilization.PUBLISHED.items():
        for (parameters, layers, step), known in zip(utilization.SIZES.values(), published, strict=True):
            for target, value in zip(utilization.TARGETS, known, strict=True):
                point = utilization.least(
                    lambda gbps, m=method, p=parameters, n=layers, s=step: utilization.layer_by_layer(m, p, n, s, gbps),
                    target,
                )
                apart.append(abs(point - utilization.nearest(value)))
    assert sum(each == 0 for each in apart) >= 68
    assert max(apart) <= 2
    assert simulated("DiLoCo", 1000.0) > 0.99


def test_simulated_utilization_is_near_the_model(run_of):
    found = utilization.utilization_of(run_of("utilization", "DiLoCo-6.2506Gbps"))
    assert found == pytest.approx(utilization.layer_by_layer("DiLoCo", 1e9, 24, 0.118, 6.2506), abs=0.03)


def test_the_sweep_has_every_point_of_the_grid():
    labels = {point.labels["cluster.wan.bandwidth"] for point in points_of("utilization", short=False)}
    assert {utilization.label(gbps) for gbps in [*utilization.GRID, 0.1 / 0.118]} == labels


def test_a_round_of_covenant_is_near_its_payload(run_of):
    run = run_of("covenant", "throughastore", iterations=60)
    assert covenant.communication(run) == pytest.approx(
        covenant.by_payload(*covenant.LINKS["through a store"]), rel=0.08
    )
    points = {point.labels["cluster.clouds.0.workers.0.nic"]: point for point in points_of("covenant", short=False)}
    for name, (up, down) in covenant.LINKS.items():
        nic = points[name].scenario().cluster.clouds[0].workers[0].nic
        assert (nic.up.value_at(0) / 1e6, nic.down.value_at(0) / 1e6) == pytest.approx((up, down))


def test_runs_that_are_not_of_the_sweep_are_refused(run_of):
    with pytest.raises(Exception, match="completed runs of a sweep with the axes count, quorum"):
        by_labels([run_of("goodput", "8-quorum2-seed0", duration=60.0)], "count", "quorum")


def test_the_page_has_verdicts(tmp_path):
    write_results("moshpit", TABLES["moshpit"], [], tmp_path, "dlion reproduce moshpit", "short")
    assert "15 of 15 numbers are as published" in (tmp_path / "README.md").read_text()
    verdicts = pd.read_csv(tmp_path / "verdicts.csv")
    assert set(verdicts["direction"]) == {"as published (short)"}
