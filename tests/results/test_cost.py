"""What a run cost, of its prices, its length and what it sent."""

from __future__ import annotations

import math

import pytest

from dlion_sim.results import Tariff, cost_of
from dlion_sim.results.cost import billed_hours

TARIFF: Tariff = {"per_hour": [3.06, 0.9], "step": 1, "least": 60, "egress": None, "watts": None, "carbon": None}


@pytest.mark.parametrize(
    ("seconds", "billed"), [(0, 60), (59.5, 60), (60.0000000001, 60), (60.5, 61), (7200, 7200), (0.1 * 3 * 1000, 300)]
)
def test_begun_seconds_are_billed_and_a_minute_in_any_case(seconds: float, billed: float) -> None:
    assert billed_hours(TARIFF, seconds) == pytest.approx(billed / 3600)


def test_begun_hours_may_be_billed_as_a_whole() -> None:
    assert billed_hours({**TARIFF, "step": 3600, "least": 0}, 3601) == pytest.approx(2)


def test_machines_are_paid_by_their_time() -> None:
    assert cost_of(TARIFF, 5400, {("a", "b"): 10**9}) == pytest.approx(
        {"total": 1.5 * 3.96, "machines": 1.5 * 3.96, "machine_hours": 3}
    )


def test_traffic_is_paid_by_the_gigabyte_each_way_at_its_own_price() -> None:
    prices: Tariff = {**TARIFF, "egress": {"a": {"b": 0.02}, "b": {"a": 0.09}}}
    cost = cost_of(prices, 3600, {("a", "b"): 3 * 10**9, ("b", "a"): 10**9})
    assert cost["egress"] == pytest.approx(0.15)
    assert cost["egress_gb"] == pytest.approx(4)
    assert cost["total"] == pytest.approx(3.96 + 0.15)


def test_energy_and_co2_are_of_the_time_that_passed() -> None:
    prices: Tariff = {**TARIFF, "watts": [300, 200], "carbon": [400, 20]}
    cost = cost_of(prices, 36, {})
    assert cost["energy_kwh"] == pytest.approx(0.005)
    assert cost["co2_kg"] == pytest.approx((300 * 400 + 200 * 20) * 0.01 / 1e6)
    assert "co2_kg" not in cost_of({**prices, "carbon": None}, 36, {})


def test_spot_machines_are_paid_while_they_are_there() -> None:
    prices: Tariff = {**TARIFF, "per_hour": [3, 5, 7], "spot": [True, False, True], "watts": [100, 100, 100]}
    cost = cost_of(prices, 7200, {}, {0: [(0, 1800), (3600, 7200)], 1: [(0, 5400)]})
    assert cost["machines"] == pytest.approx(0.5 * 3 + 2 * 5 + 2 * 7)
    assert cost["machine_hours"] == pytest.approx(4.5)
    assert cost["energy_kwh"] == pytest.approx(0.45)
    assert cost_of({**TARIFF, "per_hour": [3, 5, 7]}, 7200, {}, {0: [(0, 5400)]})["machines"] == pytest.approx(30)
    assert cost_of(prices, 7200, {}, {0: [(0, math.inf)]})["machine_hours"] == pytest.approx(4 + 60 / 3600)


def test_a_spot_machine_is_paid_from_its_start_before_its_process_runs() -> None:
    prices: Tariff = {**TARIFF, "per_hour": [3600], "least": 0, "spot": [True], "restart": 10.0}
    cost = cost_of(prices, 100, {}, {0: [(20, 50), (60, 65), (90, math.inf)]})
    assert cost["machines"] == pytest.approx(100 - 20 - 10)
