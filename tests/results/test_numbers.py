"""Numbers as people write them."""

import pytest

from dlion_sim.results.numbers import byte_unit, duration, in_bytes, number, percent


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (1350, "1,350"),
        (1234567.8, "1,234,568"),
        (12.5, "12.5"),
        (0.0123456, "0.0123"),
        (2.0, "2"),
        (99.96, "100"),
        (999.6, "1,000"),
        (-1350.2, "-1,350"),
    ],
)
def test_a_number_has_no_exponent(value, written):
    assert number(value) == written


@pytest.mark.parametrize(
    ("seconds", "written"), [(1860, "31 min"), (10_000, "2.8 h"), (40_000, "11 h"), (500_000, "5.8 d")]
)
def test_a_duration_is_in_a_unit_that_fits(seconds, written):
    assert duration(seconds, 2) == written


def test_a_percentage_keeps_its_half():
    assert percent(0.125) == "12.5 %"
    assert percent(0.9) == "90 %"


@pytest.mark.parametrize(
    ("count", "written"),
    [(0, "0 B"), (999, "999 B"), (999.7, "1 kB"), (1.35e9, "1.35 GB"), (999.6e6, "1 GB"), (2.5e15, "2,500 TB")],
)
def test_bytes_are_in_a_unit_that_fits(count, written):
    assert in_bytes(count) == written


def test_an_axis_of_bytes_has_one_unit():
    assert byte_unit(1.35e9) == (1e9, "GB")
    assert byte_unit(0) == (1.0, "B")
