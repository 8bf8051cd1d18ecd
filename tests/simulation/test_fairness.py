"""The definition of max-min sharing, on random networks."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.fairness import max_min_rates


@st.composite
def networks(draw):
    capacities = draw(st.lists(st.floats(1e-3, 1e9) | st.integers(0, 5).map(float), min_size=1, max_size=8))
    links = st.integers(0, len(capacities) - 1)
    routes = draw(st.lists(st.lists(links, min_size=1, max_size=4, unique=True), max_size=15))
    return routes, capacities


@given(networks())
def test_no_link_is_over_capacity_and_every_flow_is_bottlenecked(network):
    routes, capacities = network
    rates = max_min_rates(routes, capacities)
    load = [
        math.fsum(rate for rate, route in zip(rates, routes, strict=True) if link in route)
        for link in range(len(capacities))
    ]
    slack = [1e-9 * capacity for capacity in capacities]
    assert all(used <= capacity + extra for used, capacity, extra in zip(load, capacities, slack, strict=True))
    for rate, route in zip(rates, routes, strict=True):
        assert any(
            load[link] >= capacities[link] - slack[link]
            and rate >= max(r for r, other in zip(rates, routes, strict=True) if link in other) * (1 - 1e-9)
            for link in route
        ), "a flow crosses a full link on which no flow is faster"


def test_the_textbook_case():
    # Two links of 1 and 2: the long flow and one short flow share the first; the other short flow takes what is left.
    assert max_min_rates([(0, 1), (0,), (1,)], [1.0, 2.0]) == [0.5, 0.5, 1.5]
