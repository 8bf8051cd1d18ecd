"""Search spaces: distributions, values and descriptions."""

import pytest
from pydantic import TypeAdapter, ValidationError

from dlion_sim.sweep import axes, space

DIMENSION = TypeAdapter(space.Dimension)


@pytest.mark.parametrize(
    ("written", "chosen", "value", "described"),
    [
        ({"uniform": {"from": 0, "to": 2}}, 1.23456789, ("1.23457", 1.23457), "0 to 2"),
        ({"uniform": {"from": 1, "to": 9, "unit": "Mbps"}}, 5.5, ("5.5 Mbps", "5.5 Mbps"), "1 to 9 Mbps"),
        ({"log_uniform": {"from": 0.01, "to": 1}}, 1.0, ("1.0", 1.0), "0.01 to 1, logarithmic"),
        ({"range": {"from": 8, "to": 24, "step": 8}}, 2, ("24", 24), "8, 16, 24"),
        ({"log_range": {"from": 1, "to": 4, "count": 3, "unit": "ms"}}, 1, ("2 ms", "2 ms"), "1 ms, 2 ms, 4 ms"),
        ([True, None], "null", ("null", None), "true, null"),
        ({"a": {"name": "ako"}, "b": "hop"}, "a", ("a", {"name": "ako"}), "a, b"),
    ],
)
def test_a_choice_has_a_label_and_a_value(written, chosen, value, described):
    dimension = DIMENSION.validate_python(written)
    assert space.distribution(dimension)._contains(space.distribution(dimension).to_internal_repr(chosen))
    found = space.value(dimension, space.rounded(dimension, chosen))
    assert found == value
    assert type(found[1]) is type(value[1])
    assert space.described(dimension) == described


def test_rounding_stays_within_the_interval():
    dimension = DIMENSION.validate_python({"uniform": {"from": 0.12345678, "to": 0.12345679}})
    assert space.rounded(dimension, 0.123456785) in (0.12345678, 0.12345679)


def test_the_extremes_are_the_ends_or_all_values():
    interval = DIMENSION.validate_python({"log_uniform": {"from": 1, "to": 8}})
    assert [value for _, value in space.extremes(interval)] == [1.0, 8.0]
    assert [value for _, value in space.extremes(DIMENSION.validate_python([1, 2, 3]))] == [1, 2, 3]


def test_a_long_list_is_checked_in_linear_time(monkeypatch):
    calls = []
    monkeypatch.setattr(axes, "label_of", lambda value: calls.append(value) or str(value))
    assert len(DIMENSION.validate_python(list(range(300)))) == 300
    assert len(calls) <= 3 * 300


@pytest.mark.parametrize("kind", [list, dict.fromkeys])
def test_an_axis_is_not_endless(kind):
    with pytest.raises(ValidationError, match="at most 100000 items"):
        DIMENSION.validate_python(kind(map(str, range(100_001))))
